// What was counted of a cluster's hosts.

import { Kind } from '../../stats/layout.js';
import { HostStats } from '../../stats/layouts/cluster.js';
import type { StatsStore } from '../../stats/store.js';
import type { KnownHost } from '../../upstream/hosts/host-directory.js';

const ENTRIES = [...HostStats.entries].sort((a, b) => (a.name < b.name ? -1 : 1));

/** The counts of a host, in the order of their names. */
export const COUNT_NAMES: readonly string[] = ENTRIES.map(({ name }) => name);
/** Indexes of the counters, then of the gauges. */
export const COUNTERS: readonly number[] = indexesOf(Kind.Counter);
export const GAUGES: readonly number[] = indexesOf(Kind.Gauge);

/** A host, and its counts in the order of COUNT_NAMES. */
export interface CountedHost {
  readonly host: KnownHost;
  readonly counts: Float64Array;
}

/**
 * The hosts as they are now, in the order of priorities. They are read in one go, though a long list is printed piece by
 * piece: the block of a host that leaves in between will soon hold another one's counts. They are read where they lie: a
 * StatsReader would first put all stats of the process in order. POST /reset_counters is for /stats alone: here counters go on.
 */
export function countHosts(hosts: Iterable<KnownHost>, store: StatsStore): CountedHost[] {
  const counted = Array.from(hosts, (host) => ({ host, counts: countsOf(host, store) }));
  return counted.sort((a, b) => a.host.endpoint.priority - b.host.endpoint.priority);
}

function countsOf({ scope }: KnownHost, store: StatsStore): Float64Array {
  const counts = new Float64Array(ENTRIES.length);
  for (const [i, { at, kind }] of ENTRIES.entries()) counts[i] = store.totalAt(scope, at, kind);
  return counts;
}

function indexesOf(kind: Kind): number[] {
  return ENTRIES.flatMap((entry, index) => (entry.kind === kind ? [index] : []));
}
