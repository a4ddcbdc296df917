// The common part of policies with a locality_lb_config: locality-weighted balancing and zone-aware routing.

import type { LocalityLbConfig } from '../../config/generated/api.js';
import { byValue, DEFAULT_ZONES, type ImplementedTable, type LocalityBalancing, obeyed } from '../sdk.js';

export const LOCALITY_ROWS = {
  'envoy.extensions.load_balancing_policies.common.v3.LocalityLbConfig': obeyed(
    'zone_aware_lb_config',
    'locality_weighted_lb_config',
  ),
  'envoy.extensions.load_balancing_policies.common.v3.LocalityLbConfig.LocalityWeightedLbConfig': {},
  'envoy.extensions.load_balancing_policies.common.v3.LocalityLbConfig.ZoneAwareLbConfig': {
    routing_enabled: true,
    min_cluster_size: true,
    fail_traffic_on_panic: true,
    force_locality_direct_routing: true,
    force_local_zone: true,
    locality_basis: byValue({ HEALTHY_HOSTS_NUM: true, HEALTHY_HOSTS_WEIGHT: true }),
  },
  'envoy.extensions.load_balancing_policies.common.v3.LocalityLbConfig.ZoneAwareLbConfig.ForceLocalZone':
    obeyed('min_size'),
} satisfies ImplementedTable;

/** Returns undefined for the defaults. */
export function localityBalancing(config: LocalityLbConfig | undefined): LocalityBalancing | undefined {
  if (config === undefined) return undefined;
  const zones = config.zone_aware_lb_config ?? {};
  const { force_local_zone: forced, min_cluster_size: minSize, routing_enabled: enabled } = zones;
  return {
    isWeighted: config.locality_weighted_lb_config !== undefined,
    failTrafficOnPanic: zones.fail_traffic_on_panic ?? false,
    zones: {
      routingPercent: enabled === undefined ? DEFAULT_ZONES.routingPercent : Math.round(Number(enabled.value ?? 0)),
      minClusterSize: minSize === undefined ? DEFAULT_ZONES.minClusterSize : Number(minSize),
      // The newer field overrides the older one.
      forcedSize: forced ? (forced.min_size ?? 1) : zones.force_locality_direct_routing ? 1 : undefined,
      countsWeights: zones.locality_basis === 'HEALTHY_HOSTS_WEIGHT',
    },
  };
}

/** For policies that pick by hash, in which requests are not routed by zone. */
export function byLocalityWeight(config: object | undefined): LocalityBalancing | undefined {
  return config && { isWeighted: true, failTrafficOnPanic: false, zones: DEFAULT_ZONES };
}
