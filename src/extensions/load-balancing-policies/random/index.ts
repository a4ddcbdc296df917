// envoy.load_balancing_policies.random: any host, by its weight. Clusters read it themselves.

import type { LoadBalancingPolicyExtension } from '../../sdk.js';

export const random: LoadBalancingPolicyExtension = {
  category: 'envoy.load_balancing_policies',
  name: 'envoy.load_balancing_policies.random',
  typeUrls: ['type.googleapis.com/envoy.extensions.load_balancing_policies.random.v3.Random'],
};
