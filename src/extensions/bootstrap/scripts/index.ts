// baton.bootstrap.scripts: registers modules that extensions in TypeScript consist of. src/scripts loads them.

import type { Scripts } from '../../../config/generated/api.js';
import type { NamedExtension, Report } from '../../sdk.js';

export const scripts: NamedExtension = {
  category: 'envoy.bootstrap',
  name: 'baton.bootstrap.scripts',
  typeUrls: ['type.googleapis.com/baton.scripts.v1.Scripts'],
  implemented: { 'baton.scripts.v1.Scripts': 'all', 'baton.scripts.v1.Scripts.Module': 'all' },
  validate(config, report) {
    for (const [name, module] of Object.entries((config as Scripts).modules ?? {})) check(name, module ?? {}, report);
  },
};

type Module = NonNullable<Scripts['modules']>[string];

function check(name: string, { filename = '', package: packageName = '', watch }: Module, report: Report): void {
  const path = `modules.${name}`;
  // It is a part of the names of stats.
  if (!/^[\w-]+$/.test(name)) report(path, 'the name of a module consists of letters, digits, - and _');
  if ((filename === '') === (packageName === '')) report(path, 'exactly one of filename and package must be set');
  if (watch === true && packageName !== '')
    report(`${path}.watch`, 'packages are loaded once: give the file, with filename');
}
