// The modules of a bootstrap: reads them with the places that name them.

import { type LocatedScript, registeredScripts } from '../../config/fields/scripts.js';
import type { Bootstrap } from '../../config/generated/api.js';
import type { ScriptUse } from '../../scripts/image.js';
import { readScripts } from '../../scripts/read-scripts.js';
import type { ReadScript } from '../../scripts/reading/task.js';

/** Resolves with one result for each module. `located`: the places that give configurations to them. */
export async function loadScripts(
  bootstrap: Bootstrap,
  located: readonly LocatedScript[],
): Promise<readonly ReadScript[]> {
  const sources = registeredScripts(bootstrap);
  if (sources.length === 0) return [];
  return readScripts({ sources, uses: located.map(useOf) });
}

function useOf({ config, kind, module, place }: LocatedScript): ScriptUse {
  return { module, kind, config, path: place.path };
}
