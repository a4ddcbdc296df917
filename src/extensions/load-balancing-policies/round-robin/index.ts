// envoy.load_balancing_policies.round_robin: each host in turn, by its weight. Clusters read it themselves.

import type { LoadBalancingPolicyExtension } from '../../sdk.js';

export const roundRobin: LoadBalancingPolicyExtension = {
  category: 'envoy.load_balancing_policies',
  name: 'envoy.load_balancing_policies.round_robin',
  typeUrls: ['type.googleapis.com/envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin'],
};
