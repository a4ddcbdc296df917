// How a cluster chooses hosts: by the first policy of load_balancing_policy that Baton has, or without it by lb_policy.

import type { Any, Cluster, Cluster_LeastRequestLbConfig } from '../generated/api.js';
import { messageNameOf } from '../schema/message-name.js';
import type { Path } from '../text/path.js';

export interface LoadBalancing {
  readonly policy: 'ROUND_ROBIN' | 'LEAST_REQUEST' | 'RANDOM';
  /** Of LEAST_REQUEST. */
  readonly leastRequest: LeastRequestOptions | undefined;
  /** Where that stands, from the cluster on. */
  readonly path: Path;
}

/** What the messages of both fields have. */
export type LeastRequestOptions = Pick<Cluster_LeastRequestLbConfig, 'choice_count' | 'active_request_bias'>;

const POLICIES: { readonly [message: string]: LoadBalancing['policy'] } = {
  'envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin': 'ROUND_ROBIN',
  'envoy.extensions.load_balancing_policies.least_request.v3.LeastRequest': 'LEAST_REQUEST',
  'envoy.extensions.load_balancing_policies.random.v3.Random': 'RANDOM',
};

/** Of a cluster that is as it has to be: another one is taken for ROUND_ROBIN. */
export function loadBalancing(cluster: Cluster): LoadBalancing {
  const { load_balancing_policy: list, lb_policy: policy, least_request_lb_config: leastRequest } = cluster;
  if (list === undefined) {
    const known = policy === 'LEAST_REQUEST' || policy === 'RANDOM' ? policy : 'ROUND_ROBIN';
    return { policy: known, leastRequest, path: ['least_request_lb_config'] };
  }
  for (const [index, entry] of (list.policies ?? []).entries()) {
    const config: Any | undefined = entry?.typed_extension_config?.typed_config;
    const chosen = config && POLICIES[messageNameOf(config['@type'])];
    if (chosen === undefined) continue;
    const path = ['load_balancing_policy', 'policies', index, 'typed_extension_config', 'typed_config'];
    return { policy: chosen, leastRequest: config as unknown as LeastRequestOptions, path };
  }
  return { policy: 'ROUND_ROBIN', leastRequest: undefined, path: [] };
}
