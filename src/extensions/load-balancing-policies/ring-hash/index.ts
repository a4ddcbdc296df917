// envoy.load_balancing_policies.ring_hash: requests of one hash go to one host, by a ring. Clusters read it themselves.

import type { LoadBalancingPolicyExtension } from '../../sdk.js';

export const ringHash: LoadBalancingPolicyExtension = {
  category: 'envoy.load_balancing_policies',
  name: 'envoy.load_balancing_policies.ring_hash',
  typeUrls: ['type.googleapis.com/envoy.extensions.load_balancing_policies.ring_hash.v3.RingHash'],
};
