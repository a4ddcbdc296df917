// Zone-aware routing: as many requests as possible stay in this server's locality, without more load for its hosts than for
// those elsewhere. This is the arithmetic; ZoneAware picks by its result.

import type { LocalityGroup } from './localities.js';

/** Settings of zone-aware routing; plain data. */
export interface ZoneSettings {
  /** Percentage of the requests that are routed by zone. */
  readonly routingPercent: number;
  /** A cluster with fewer healthy hosts is not routed by zone. */
  readonly minClusterSize: number;
  /** With this many healthy hosts in its locality, all requests stay there; undefined: load decides. */
  readonly forcedSize: number | undefined;
  /** The load that a locality can take is the sum of its hosts' weights, not their number. */
  readonly countsWeights: boolean;
}

export const DEFAULT_ZONES: ZoneSettings = {
  routingPercent: 100,
  minClusterSize: 6,
  forcedSize: undefined,
  countsWeights: false,
};

export type ZoneRoutes =
  /** Zones are ignored, and why: the local cluster lacks this server's locality, or the cluster is too small. */
  | { readonly kind: 'none'; readonly reason: 'no-zones' | 'local-cluster-not-ok' | 'cluster-too-small' }
  /** All requests go to the first locality, which is this server's. */
  | { readonly kind: 'direct' }
  /** `local` of SHARES requests go to the first locality. Others go by chance to locality i, in proportion to capacities[i]. */
  | {
      readonly kind: 'residual';
      readonly local: number;
      /** Sum of the capacities up to and including each locality. */
      readonly capacities: readonly number[];
    };

/** The number in whose parts shares are counted. */
export const SHARES = 10_000;

/**
 * Returns where requests go.
 * @param upstream localities of the cluster's priority 0, the own one first
 * @param local localities of the local cluster, the own one first
 */
export function zoneRoutes(
  upstream: readonly LocalityGroup[],
  local: readonly LocalityGroup[],
  { countsWeights, forcedSize, minClusterSize }: ZoneSettings,
): ZoneRoutes {
  if (upstream.length < 2 || (forcedSize === undefined && local.length < 2)) return NO_ZONES;
  if (local[0]?.isOwn !== true) return { kind: 'none', reason: 'local-cluster-not-ok' };
  if (healthyHosts(upstream) < minClusterSize) return { kind: 'none', reason: 'cluster-too-small' };
  const offered = sharesOf(upstream, countsWeights);
  const demand = demandOf(upstream, local, countsWeights);
  const hasOwn = upstream[0]!.isOwn;
  if (hasOwn) {
    const isEnough = offered[0]! > 0 && offered[0]! >= demand[0]!;
    if (isEnough || (forcedSize !== undefined && upstream[0]!.group.healthy >= forcedSize)) return { kind: 'direct' };
  }
  const stays = hasOwn && demand[0]! > 0 ? Math.floor((offered[0]! * SHARES) / demand[0]!) : 0;
  let sum = 0;
  const capacities = upstream.map(({ isOwn }, index) => {
    return (sum += isOwn ? 0 : Math.max(0, offered[index]! - demand[index]!));
  });
  return { kind: 'residual', local: stays, capacities };
}

const NO_ZONES: ZoneRoutes = { kind: 'none', reason: 'no-zones' };

/** Returns the share of the load that the healthy hosts of each locality can take. */
function sharesOf(groups: readonly LocalityGroup[], countsWeights: boolean): number[] {
  const loads = groups.map(({ group, healthyWeight }) => (countsWeights ? healthyWeight : group.healthy));
  const total = loads.reduce((sum, load) => sum + load, 0);
  return loads.map((load) => (total > 0 ? Math.floor((SHARES * load) / total) : 0));
}

/** Returns the share of all requests that the healthy hosts of the local cluster send from each locality of the cluster. */
function demandOf(
  upstream: readonly LocalityGroup[],
  local: readonly LocalityGroup[],
  countsWeights: boolean,
): number[] {
  const shares = new Map(sharesOf(local, countsWeights).map((share, index) => [textOf(local[index]!), share]));
  // A locality without healthy hosts takes nothing, so it does not matter how much is sent from there.
  return upstream.map((locality) => (locality.group.healthy === 0 ? 0 : (shares.get(textOf(locality)) ?? 0)));
}

function textOf({ locality: { region, subZone, zone } }: LocalityGroup): string {
  return JSON.stringify([region, zone, subZone]);
}

function healthyHosts(groups: readonly LocalityGroup[]): number {
  return groups.reduce((sum, { group }) => sum + group.healthy, 0);
}
