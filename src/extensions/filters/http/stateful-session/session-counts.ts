// The counters of sessions: those of the filter, and those of routes with a stat_prefix of their own.

import { type DynamicCounter, defineLayout, type Scope, scopePrefix, type WorkerContext } from '../../../sdk.js';

/** Scope `http.<prefix>.stateful_session.<stat_prefix>.`; only with a stat_prefix. */
export const SessionStats = defineLayout({
  routed: 'counter',
  failed_open: 'counter',
  failed_closed: 'counter',
  no_session: 'counter',
});

type Name = keyof typeof SessionStats.at;
type Counter = Pick<DynamicCounter, 'increment'>;

export type SessionCounts = Readonly<Record<Name, Counter>>;

export function filterCounts(scope: Scope): SessionCounts {
  return countsOf((name) => ({ increment: () => scope.increment(SessionStats.at[name]) }));
}

/** Returns the counters of a route, which appear with its first request. As in Envoy, they belong to no connection manager. */
export function routeCounts({ stats }: WorkerContext, statPrefix: string): SessionCounts {
  const prefix = `stateful_session.${scopePrefix(statPrefix)}.`;
  return countsOf((name) => stats.dynamicCounter(prefix, name));
}

function countsOf(counter: (name: Name) => Counter): SessionCounts {
  return {
    routed: counter('routed'),
    failed_open: counter('failed_open'),
    failed_closed: counter('failed_closed'),
    no_session: counter('no_session'),
  };
}
