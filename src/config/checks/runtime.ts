// Runtime layers: unique names, one admin layer at most, and static layers whose values are values.

import type { LayeredRuntime } from '../generated/api.js';
import { runtimeEntries } from '../runtime-entries.js';
import type { Problems } from '../text/problems.js';
import { checkUnique } from './names.js';

const LAYERS = ['layered_runtime', 'layers'];

export function checkRuntime(runtime: LayeredRuntime | undefined, problems: Problems): void {
  const layers = runtime?.layers ?? [];
  const names = layers.map((layer) => layer?.name);
  checkUnique(names, (index) => [...LAYERS, index, 'name'], 'runtime layer', problems);
  let adminLayers = 0;
  layers.forEach((layer, index) => {
    if (layer?.admin_layer && ++adminLayers > 1) {
      problems.error([...LAYERS, index, 'admin_layer'], 'too many admin layers: there may be one at most');
    }
    for (const { key, path, value } of runtimeEntries(layer?.static_layer ?? {})) {
      const what = value === null ? 'null' : Array.isArray(value) ? 'a list' : undefined;
      if (what === undefined) continue;
      problems.error([...LAYERS, index, 'static_layer', ...path], `invalid runtime value for '${key}': ${what}`);
    }
  });
}
