// Starts the overload manager of a bootstrap.

import { BatonError, messageOf } from '../../common/errors/errors.js';
import { Action } from '../../config/fields/overload-names.js';
import type { Bootstrap } from '../../config/generated/api.js';
import { OVERLOAD_PORT } from '../../runtime/overload/overload-state.js';
import type { Runtime } from '../../runtime/runtime.js';
import type { Primary } from '../primary.js';
import { OverloadManager } from './overload-manager.js';
import { ShrinkHeap } from './shrink-heap.js';

/** Returns undefined without an overload manager. Throws a BatonError when a resource cannot be measured here. */
export function startOverload(
  primary: Primary,
  runtime: Runtime,
  { overload_manager: config }: Bootstrap,
): { close(): void } | undefined {
  if (config === undefined) return undefined;
  const { ports, scopes, shim, workers } = primary;
  const action = config.actions?.find(({ name }) => name === Action.ShrinkHeap);
  const shrink =
    action &&
    new ShrinkHeap(action, scopes, () => {
      workers.broadcast({ kind: 'shrink-heap' });
      shim.collectGarbage();
      shim.trimMemory();
    });
  try {
    const manager = new OverloadManager(config, {
      ...{ primary, runtime },
      port: ports.port(OVERLOAD_PORT),
      refreshed: (state) => shrink?.update(state),
    });
    return {
      close: () => {
        manager.close();
        shrink?.close();
      },
    };
  } catch (error) {
    throw new BatonError('CONFIG_INVALID', `overload_manager: ${messageOf(error)}`);
  }
}
