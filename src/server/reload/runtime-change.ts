// Other values of runtime that stand in the configuration.

import type { RuntimeLayer } from '../../config/generated/api.js';
import type { LayeredRuntime } from '../../runtime/layered-runtime.js';
import type { Change } from './carry-out.js';

/** `before` and `after`: all layers, of which only static ones differ. */
export function runtimeChange(
  runtime: Pick<LayeredRuntime, 'replaceStaticLayers'>,
  before: readonly RuntimeLayer[],
  after: readonly RuntimeLayer[],
): Change {
  return {
    prepare: () => {},
    commit: () => runtime.replaceStaticLayers(after),
    discard: () => {},
    undo: () => runtime.replaceStaticLayers(before),
  };
}
