// What was counted of a cluster's hosts.

import { Kind } from '../stats/layout.js';
import { HostStats } from '../stats/layouts/cluster.js';
import type { StatsReader } from '../stats/reader.js';
import { layoutTables, Pass } from '../stats/section.js';
import type { KnownHost } from '../upstream/host-directory.js';
import type { HostView } from './admin-services.js';

const TABLES = layoutTables(HostStats.entries);
const TABLE = TABLES[Pass.Values];

/** The counts of a host, in the order of their names. */
export const COUNT_NAMES: readonly string[] = TABLE.names;
/** Indexes of the counters, then of the gauges. */
export const COUNTERS: readonly number[] = indexesOf(Kind.Counter);
export const GAUGES: readonly number[] = indexesOf(Kind.Gauge);

/** A host, and its counts in the order of COUNT_NAMES. */
export interface CountedHost extends HostView {
  readonly counts: Float64Array;
}

/**
 * The hosts as they are now, in the order of priorities. They are read in one go, though a long list is printed piece by piece: the block of a host
 * that leaves in between will soon hold another one's counts.
 */
export function countHosts(hosts: Iterable<HostView>, reader: StatsReader): CountedHost[] {
  reader.refresh();
  const counted = Array.from(hosts, ({ host, healthFlags }) => ({ host, healthFlags, counts: countsOf(host, reader) }));
  return counted.sort((a, b) => a.host.endpoint.priority - b.host.endpoint.priority);
}

function countsOf(host: KnownHost, reader: StatsReader): Float64Array {
  const section = {
    prefix: '',
    hidden: true,
    tables: TABLES,
    chunk: host.statsChunk,
    base: host.statsBase,
    place: 0,
    tag: 0,
    parts: undefined,
  };
  const counts = new Float64Array(TABLE.length);
  for (let i = 0; i < counts.length; i++) counts[i] = reader.value(section, TABLE, i);
  return counts;
}

function indexesOf(kind: Kind): number[] {
  return TABLE.names.flatMap((_name, index) => (TABLE.kinds[index] === kind ? [index] : []));
}
