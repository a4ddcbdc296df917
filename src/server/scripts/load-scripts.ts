// The modules of a bootstrap: reads them with the places that name them.

import { type NamedScript, namedScripts, placeOf, registeredScripts } from '../../config/fields/scripts.js';
import type { Bootstrap } from '../../config/generated/api.js';
import type { ScriptUse } from '../../scripts/image.js';
import { readScripts } from '../../scripts/read-scripts.js';
import type { ReadScript } from '../../scripts/reading/task.js';

/** Resolves with one result for each module. */
export async function loadScripts(bootstrap: Bootstrap): Promise<readonly ReadScript[]> {
  const sources = registeredScripts(bootstrap);
  if (sources.length === 0) return [];
  const uses = namedScripts(bootstrap.static_resources, ['static_resources']).map(useOf);
  return readScripts({ sources, uses });
}

function useOf(named: NamedScript): ScriptUse {
  const { config, kind, module } = named;
  return { module, kind, config, path: placeOf(named) };
}
