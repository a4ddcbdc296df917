// Modules of scripts: a configuration names only those that the bootstrap registers.

import { didYouMean } from '../../common/text/suggest.js';
import { namedScripts, registeredScripts } from '../fields/scripts.js';
import type { Bootstrap } from '../generated/api.js';
import type { Problems } from '../text/problems.js';

export function checkScripts(bootstrap: Bootstrap, problems: Problems): void {
  const names = new Set(registeredScripts(bootstrap).map(({ name }) => name));
  for (const { isOfRoute, module, path } of namedScripts(bootstrap.static_resources, ['static_resources'])) {
    if (isOfRoute || names.has(module) || module === '') continue;
    const remedy = names.size === 0 ? '; add baton.scripts.v1.Scripts to bootstrap_extensions' : '';
    problems.error(
      [...path, 'module'],
      `no module '${module}' is registered in bootstrap_extensions${didYouMean(module, names)}${remedy}`,
    );
  }
}
