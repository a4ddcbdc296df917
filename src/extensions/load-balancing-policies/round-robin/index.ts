// envoy.load_balancing_policies.round_robin: hosts in turn, in proportion to weights.

import type { RoundRobin as RoundRobinConfig } from '../../../config/generated/api.js';
import { type LoadBalancingPolicyExtension, notImplemented } from '../../sdk.js';
import { LOCALITY_ROWS, localityBalancing } from '../localities.js';
import { RoundRobin, WeightedRoundRobin } from './round-robin.js';

export const roundRobin: LoadBalancingPolicyExtension<RoundRobinConfig> = {
  category: 'envoy.load_balancing_policies',
  name: 'envoy.load_balancing_policies.round_robin',
  typeUrls: ['type.googleapis.com/envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin'],
  implemented: {
    'envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin': {
      locality_lb_config: true,
      ...notImplemented('slow_start_config'),
    },
    ...LOCALITY_ROWS,
  },
  isZoneAware: true,
  localities: (config) => localityBalancing(config.locality_lb_config),
  createLoadBalancer: (_settings, hosts, { random }) =>
    hosts.isWeighted ? new WeightedRoundRobin(hosts, random) : new RoundRobin(hosts, random),
};
