// envoy.load_balancing_policies.least_request: of a few hosts the one with the fewest active requests. Clusters read it themselves.

import type { LoadBalancingPolicyExtension } from '../../sdk.js';

export const leastRequest: LoadBalancingPolicyExtension = {
  category: 'envoy.load_balancing_policies',
  name: 'envoy.load_balancing_policies.least_request',
  typeUrls: ['type.googleapis.com/envoy.extensions.load_balancing_policies.least_request.v3.LeastRequest'],
};
