// `<stat_prefix>.http_local_rate_limit.`: what became of requests. The filter's own are a scope; those of routes that have another
// stat_prefix are names that traffic brings, as routes come and go.

import { type DynamicCounter, defineLayout, type Scope, scopePrefix, type WorkerContext } from '../../../sdk.js';

export const LocalRateLimitStats = defineLayout({
  enabled: 'counter',
  enforced: 'counter',
  ok: 'counter',
  rate_limited: 'counter',
});

const { at } = LocalRateLimitStats;

export type Outcome = keyof typeof at;

export interface OutcomeCounters {
  count(outcome: Outcome): void;
}

/** The prefix of the stats of a configuration. */
export function statsPrefix(statPrefix = ''): string {
  return `${statPrefix}.http_local_rate_limit.`;
}

/** Counters in the filter's own scope. */
export class OwnCounters implements OutcomeCounters {
  readonly #scope: Scope;

  constructor(scope: Scope) {
    this.#scope = scope;
  }

  count(outcome: Outcome): void {
    this.#scope.increment(at[outcome]);
  }
}

/** Counters of a route. They stay while the process lives: no scope that comes and goes has them. */
export class RouteCounters implements OutcomeCounters {
  readonly #counters: Readonly<Record<Outcome, DynamicCounter>>;

  constructor(stats: WorkerContext['stats'], statPrefix: string | undefined) {
    const counter = (outcome: Outcome) => stats.dynamicCounter('', scopePrefix(statsPrefix(statPrefix)) + outcome);
    this.#counters = {
      enabled: counter('enabled'),
      enforced: counter('enforced'),
      ok: counter('ok'),
      rate_limited: counter('rate_limited'),
    };
  }

  count(outcome: Outcome): void {
    this.#counters[outcome].increment();
  }
}
