// Counters `<stat_prefix>.http_local_rate_limit.*`. They are process-wide names instead of a scope of a chain: any filter and
// route may use any stat_prefix, and routes are added and removed at run time.

import { type DynamicCounter, scopePrefix, type WorkerContext } from '../../../sdk.js';

export interface OutcomeCounters {
  /** Requests for which the filter was enabled. */
  readonly enabled: DynamicCounter;
  readonly ok: DynamicCounter;
  readonly rateLimited: DynamicCounter;
  /** Rate-limited requests that lacked only tokens of limits in shadow mode. */
  readonly shadow: DynamicCounter;
  /** Rate-limited requests that were refused. */
  readonly enforced: DynamicCounter;
}

/** Returns the counters. They exist until the process ends, because they have no scope. */
export function outcomeCounters({ stats }: WorkerContext, statPrefix: string): OutcomeCounters {
  const counter = (outcome: string) =>
    stats.dynamicCounter('', `${scopePrefix(statPrefix)}.http_local_rate_limit.${outcome}`);
  return {
    enabled: counter('enabled'),
    ok: counter('ok'),
    rateLimited: counter('rate_limited'),
    shadow: counter('shadow_mode'),
    enforced: counter('enforced'),
  };
}
