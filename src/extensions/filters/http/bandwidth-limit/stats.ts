// Stats `<stat_prefix>.http_bandwidth_limit.*`. They are process-wide names instead of a scope of a chain: any filter and route may use
// any stat_prefix, and routes are added and removed at run time.

import type { DynamicCounter, DynamicGauge, DynamicHistogram, WorkerContext } from '../../../sdk.js';
import { scopePrefix } from '../../../sdk.js';

/** Those of one direction. */
export interface DirectionStats {
  /** Messages for which the filter was enabled. */
  readonly enabled: DynamicCounter;
  /** Times at which bytes had to wait. */
  readonly enforced: DynamicCounter;
  readonly incomingTotal: DynamicCounter;
  readonly allowedTotal: DynamicCounter;
  readonly pending: DynamicGauge;
  /** The last received and the last passed piece. */
  readonly incomingSize: DynamicGauge;
  readonly allowedSize: DynamicGauge;
  readonly duration: DynamicHistogram;
}

/** Returns the stats. They exist until the process ends, because they have no scope. */
export function directionStats(
  { stats }: WorkerContext,
  statPrefix: string,
  direction: 'request' | 'response',
): DirectionStats {
  const name = (what: string) => `${scopePrefix(statPrefix)}.http_bandwidth_limit.${direction}_${what}`;
  return {
    enabled: stats.dynamicCounter('', name('enabled')),
    enforced: stats.dynamicCounter('', name('enforced')),
    incomingTotal: stats.dynamicCounter('', name('incoming_total_size')),
    allowedTotal: stats.dynamicCounter('', name('allowed_total_size')),
    pending: stats.dynamicGauge('', name('pending')),
    incomingSize: stats.dynamicGauge('', name('incoming_size')),
    allowedSize: stats.dynamicGauge('', name('allowed_size')),
    duration: stats.dynamicHistogram('', name('transfer_duration')),
  };
}
