// envoy.load_balancing_policies.cluster_provided: the cluster itself determines the host of each request.

import type { ClusterProvided } from '../../../config/generated/api.js';
import type { LoadBalancingPolicyExtension } from '../../sdk.js';

export const clusterProvided: LoadBalancingPolicyExtension<ClusterProvided, undefined> = {
  category: 'envoy.load_balancing_policies',
  name: 'envoy.load_balancing_policies.cluster_provided',
  typeUrls: ['type.googleapis.com/envoy.extensions.load_balancing_policies.cluster_provided.v3.ClusterProvided'],
  implemented: { 'envoy.extensions.load_balancing_policies.cluster_provided.v3.ClusterProvided': {} },
  createLoadBalancer: () => NO_PICK,
};

const NO_PICK = { pick: () => -1 };
