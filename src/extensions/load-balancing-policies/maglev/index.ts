// envoy.load_balancing_policies.maglev: requests of one hash go to one host, by a table. Clusters read it themselves.

import type { LoadBalancingPolicyExtension } from '../../sdk.js';

export const maglev: LoadBalancingPolicyExtension = {
  category: 'envoy.load_balancing_policies',
  name: 'envoy.load_balancing_policies.maglev',
  typeUrls: ['type.googleapis.com/envoy.extensions.load_balancing_policies.maglev.v3.Maglev'],
};
