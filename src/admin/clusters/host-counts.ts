// The counts of a cluster's hosts.

import { Kind } from '../../stats/layout.js';
import { HostStats } from '../../stats/layouts/cluster.js';
import type { StatsStore } from '../../stats/store.js';
import type { KnownHost } from '../../upstream/hosts/host-directory.js';
import type { ClusterView } from '../admin-services.js';

const ENTRIES = [...HostStats.entries].sort((a, b) => (a.name < b.name ? -1 : 1));

/** Names of a host's counts, sorted. */
export const COUNT_NAMES: readonly string[] = ENTRIES.map(({ name }) => name);
/** Indexes of the counters, then of the gauges. */
export const COUNTERS: readonly number[] = indexesOf(Kind.Counter);
export const GAUGES: readonly number[] = indexesOf(Kind.Gauge);

/** A host, and its counts in the order of COUNT_NAMES. */
export interface CountedHost {
  readonly host: KnownHost;
  readonly counts: Float64Array;
}

/** Hosts counted in one step: about a millisecond's work. */
const BATCH = 500;

/**
 * Yields the current hosts in the order of priorities. A long list is counted while it is printed; hosts removed meanwhile
 * are skipped, because their blocks are soon reused for others. The blocks are read directly: a StatsReader would first sort
 * all stats of the process. POST /reset_counters affects only /stats: these counters continue.
 */
export function* countedHosts(cluster: Pick<ClusterView, 'hosts'>, store: StatsStore): Generator<CountedHost, void> {
  const { hosts } = cluster;
  const sorted = [...hosts].sort((a, b) => a.endpoint.priority - b.endpoint.priority);
  for (let from = 0; from < sorted.length; from += BATCH) {
    const batch = sorted.slice(from, from + BATCH);
    const present = cluster.hosts === hosts ? batch : stillPresent(batch, cluster.hosts);
    yield* present.map((host) => ({ host, counts: countsOf(host, store) }));
  }
}

function stillPresent(hosts: readonly KnownHost[], all: Iterable<KnownHost>): KnownHost[] {
  const scopes = new Set(Array.from(all, ({ scope }) => scope));
  return hosts.filter(({ scope }) => scopes.has(scope));
}

function countsOf({ scope }: KnownHost, store: StatsStore): Float64Array {
  const counts = new Float64Array(ENTRIES.length);
  for (const [i, { at, kind }] of ENTRIES.entries()) counts[i] = store.totalAt(scope, at, kind);
  return counts;
}

function indexesOf(kind: Kind): number[] {
  return ENTRIES.flatMap((entry, index) => (entry.kind === kind ? [index] : []));
}
