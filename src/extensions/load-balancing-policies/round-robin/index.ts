// envoy.load_balancing_policies.round_robin: hosts in turn, in proportion to weights.

import type { RoundRobin as RoundRobinConfig } from '../../../config/generated/api.js';
import type { LoadBalancingPolicyExtension } from '../../sdk.js';
import { LOCALITY_ROWS, localityBalancing } from '../localities.js';
import { SLOW_START_ROWS, type SlowStartSettings, slowStart, slowStartSettings } from '../slow-start.js';
import { RoundRobin, WeightedRoundRobin } from './round-robin.js';

export const roundRobin: LoadBalancingPolicyExtension<RoundRobinConfig, SlowStartSettings | undefined> = {
  category: 'envoy.load_balancing_policies',
  name: 'envoy.load_balancing_policies.round_robin',
  typeUrls: ['type.googleapis.com/envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin'],
  implemented: {
    'envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin': {
      locality_lb_config: true,
      slow_start_config: true,
    },
    ...LOCALITY_ROWS,
    ...SLOW_START_ROWS,
  },
  isZoneAware: true,
  isPredictable: true,
  localities: (config) => localityBalancing(config.locality_lb_config),
  settings: (config) => slowStartSettings(config.slow_start_config),
  needsHealthTimes: (settings) => settings !== undefined,
  createLoadBalancer(settings, hosts, context) {
    const starting = slowStart(settings, hosts, context);
    const isEven = starting === undefined && !hosts.isWeighted;
    return isEven ? new RoundRobin(hosts, context.random) : new WeightedRoundRobin(hosts, context.random, starting);
  },
};
