// Runtime layers: unique names, at most one admin layer, valid values in static layers, and complete rtds layers.

import { wrongRuntimeValues } from '../fields/runtime-entries.js';
import type { LayeredRuntime, RuntimeLayer_RtdsLayer } from '../generated/api.js';
import type { Path } from '../text/path.js';
import type { Problems } from '../text/problems.js';
import { checkUnique } from './names/unique-names.js';

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
    for (const { key, path, what } of wrongRuntimeValues(layer?.static_layer ?? {})) {
      problems.error([...LAYERS, index, 'static_layer', ...path], `invalid runtime value for '${key}': ${what}`);
    }
    if (layer?.rtds_layer) checkRtds(layer.rtds_layer, [...LAYERS, index, 'rtds_layer'], problems);
  });
}

function checkRtds({ name, rtds_config }: RuntimeLayer_RtdsLayer, path: Path, problems: Problems): void {
  if (!name) problems.error([...path, 'name'], 'the name of the resource is missing');
  if (!rtds_config) problems.error([...path, 'rtds_config'], 'the source of the resource is missing');
}
