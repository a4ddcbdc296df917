// A small cluster in transit to the workers: a string, which a worker parses when the cluster is first used. There may be tens of
// thousands of clusters, of which a worker uses a few.

import type { ClusterSnapshot } from './cluster-snapshot.js';
import type { HostSetData } from './hosts/host-set.js';

export interface PackedCluster {
  readonly name: string;
  /** A ClusterSnapshot as JSON, with the columns of its hosts as lists. */
  readonly text: string;
}

/** The first request of a packed cluster waits until it is parsed and built; with so few hosts that takes some microseconds. */
const MAX_HOSTS = 16;

/** Returns undefined when the cluster should be built before its first use because that takes longer. */
export function packCluster(snapshot: ClusterSnapshot): PackedCluster | undefined {
  const { hosts, spec } = snapshot;
  const { picksByHash, subsets } = spec.loadBalancer;
  if (hosts.blocks.length > MAX_HOSTS || picksByHash || subsets !== undefined) return undefined;
  const { sourceAddress: source } = spec;
  const { healthySinceMs: times } = hosts;
  const packed = {
    ...snapshot,
    spec: source === undefined ? spec : { ...spec, sourceAddress: [...source] },
    hosts: { ...hosts, ...listsOf(hosts), ...(times && { healthySinceMs: [...times] }) },
  };
  return { name: spec.name, text: JSON.stringify(packed) };
}

export function unpackCluster({ text }: PackedCluster): ClusterSnapshot {
  const packed = JSON.parse(text) as ClusterSnapshot;
  const { hosts, spec } = packed;
  const { sourceAddress: source } = spec;
  const { healthySinceMs: times } = hosts;
  return {
    ...packed,
    spec: source === undefined ? spec : { ...spec, sourceAddress: Uint8Array.from(source) },
    hosts: { ...hosts, ...columnsOf(hosts), ...(times && { healthySinceMs: Float64Array.from(times) }) },
  };
}

type Columns = Omit<
  HostSetData,
  'names' | 'localities' | 'localityMetadata' | 'hashKeys' | 'metadata' | 'healthySinceMs' | 'transports' | 'additional'
>;

function listsOf(hosts: HostSetData): { readonly [column in keyof Columns]: readonly number[] } {
  return {
    sockaddrs: [...hosts.sockaddrs],
    sockaddrEnds: [...hosts.sockaddrEnds],
    hostnameIndexes: [...hosts.hostnameIndexes],
    localityIndexes: [...hosts.localityIndexes],
    blocks: [...hosts.blocks],
    statsChunks: [...hosts.statsChunks],
    statsBases: [...hosts.statsBases],
    weights: [...hosts.weights],
    priorities: [...hosts.priorities],
    healthFlags: [...hosts.healthFlags],
    canaries: [...hosts.canaries],
  };
}

function columnsOf(lists: { readonly [column in keyof Columns]: Iterable<number> }): Columns {
  return {
    sockaddrs: Uint8Array.from(lists.sockaddrs),
    sockaddrEnds: Int32Array.from(lists.sockaddrEnds),
    hostnameIndexes: Uint32Array.from(lists.hostnameIndexes),
    localityIndexes: Uint32Array.from(lists.localityIndexes),
    blocks: Int32Array.from(lists.blocks),
    statsChunks: Int32Array.from(lists.statsChunks),
    statsBases: Int32Array.from(lists.statsBases),
    weights: Uint32Array.from(lists.weights),
    priorities: Uint8Array.from(lists.priorities),
    healthFlags: Int32Array.from(lists.healthFlags),
    canaries: Uint8Array.from(lists.canaries),
  };
}
