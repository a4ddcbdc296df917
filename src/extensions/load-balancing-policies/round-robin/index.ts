// envoy.load_balancing_policies.round_robin: hosts in turn, in proportion to weights.

import { type LoadBalancingPolicyExtension, notImplemented } from '../../sdk.js';
import { RoundRobin, WeightedRoundRobin } from './round-robin.js';

export const roundRobin: LoadBalancingPolicyExtension = {
  category: 'envoy.load_balancing_policies',
  name: 'envoy.load_balancing_policies.round_robin',
  typeUrls: ['type.googleapis.com/envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin'],
  implemented: {
    'envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin': {
      ...notImplemented('slow_start_config', 'locality_lb_config'),
    },
  },
  createLoadBalancer: (_settings, hosts, { random }) =>
    hosts.isWeighted ? new WeightedRoundRobin(hosts, random) : new RoundRobin(hosts, random),
};
