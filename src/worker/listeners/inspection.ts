// Builds the listener filters of a listener from its configuration.

import { durationMs } from '../../common/time/duration.js';
import type { Listener } from '../../config/generated/api.js';
import type { WorkerContext } from '../../extensions/factories.js';
import type { InspectionSettings } from '../../listener/inspections.js';
import type { ListenerFilter } from '../../listener/listener-filter.js';
import { RESTORES_DESTINATION } from '../../listener/restore-destination.js';

/** Envoy's default. */
const TIMEOUT_MS = 15_000;

/** Returns undefined for a listener without listener filters, unless it is internal. Throws when one cannot be built. */
export function inspectionOf(config: Listener, context: WorkerContext): InspectionSettings | undefined {
  const filters = (config.listener_filters ?? []).map(({ typed_config: filter }) => {
    const extension = context.extensions.listenerFilter(filter!);
    return checked(extension.createOnWorker(filter, context), extension.name);
  });
  // After the others, as in Envoy.
  if (config.use_original_dst) filters.push(RESTORES_DESTINATION);
  if (filters.length === 0 && config.internal_listener === undefined) return undefined;
  return {
    filters,
    timeoutMs: durationMs(config.listener_filters_timeout, TIMEOUT_MS),
    continuesOnTimeout: config.continue_on_listener_filters_timeout ?? false,
    timers: context.timers,
  };
}

function checked(filter: ListenerFilter, name: string): ListenerFilter {
  if (typeof filter?.inspect === 'function' && filter.maxBytes >= 0) return filter;
  throw new TypeError(`createOnWorker() of '${name}' returned no object with an inspect() and maxBytes`);
}
