// `<stat_prefix>.http_local_rate_limit.`: what became of requests. Any filter and any route may have any stat_prefix, and routes come
// and go while they are used: so these are no scope of a chain, but names, of which each is there once, whoever counts in it.

import { type DynamicCounter, scopePrefix, type WorkerContext } from '../../../sdk.js';

export interface OutcomeCounters {
  /** Requests that the limit is for. */
  readonly enabled: DynamicCounter;
  readonly ok: DynamicCounter;
  readonly rateLimited: DynamicCounter;
  /** Of those that are rate limited the ones that lacked only tokens of limits in shadow mode. */
  readonly shadow: DynamicCounter;
  /** Of those that are rate limited the ones that were refused. */
  readonly enforced: DynamicCounter;
}

/** They stay while the process lives, as no scope has them. */
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
