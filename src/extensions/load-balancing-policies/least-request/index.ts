// envoy.load_balancing_policies.least_request: the host with the fewest active requests among a few random ones.

import type { LeastRequest as LeastRequestConfig } from '../../../config/generated/api.js';
import { byValue, type LoadBalancingPolicyExtension, notImplemented } from '../../sdk.js';
import { LOCALITY_ROWS, localityBalancing } from '../localities.js';
import { LeastRequest, WeightedLeastRequest } from './least-request.js';

export interface LeastRequestSettings {
  /** Random hosts that are compared for a request. */
  readonly choiceCount: number;
  /** The exponent by which active requests reduce a host's weight. */
  readonly activeRequestBias: { readonly runtimeKey: string; readonly value: number };
}

export const leastRequest: LoadBalancingPolicyExtension<LeastRequestConfig, LeastRequestSettings> = {
  category: 'envoy.load_balancing_policies',
  name: 'envoy.load_balancing_policies.least_request',
  typeUrls: ['type.googleapis.com/envoy.extensions.load_balancing_policies.least_request.v3.LeastRequest'],
  implemented: {
    'envoy.extensions.load_balancing_policies.least_request.v3.LeastRequest': {
      choice_count: true,
      active_request_bias: true,
      selection_method: byValue({ N_CHOICES: true, FULL_SCAN: false }),
      locality_lb_config: true,
      ...notImplemented('slow_start_config', 'enable_full_scan'),
    },
    ...LOCALITY_ROWS,
  },
  countsActiveRequests: true,
  validate({ active_request_bias: bias }, report) {
    const value = bias?.default_value ?? 0;
    if (Number(value) >= 0 && Number.isFinite(Number(value))) return;
    report('active_request_bias.default_value', `it must be a number of at least 0, found ${value}`);
  },
  settings({ active_request_bias: bias, choice_count: choiceCount = 2 }) {
    const value = bias === undefined ? 1 : Number(bias.default_value ?? 0);
    return { choiceCount, activeRequestBias: { runtimeKey: bias?.runtime_key ?? '', value } };
  },
  isZoneAware: true,
  localities: (config) => localityBalancing(config.locality_lb_config),
  runtimeNumber: ({ activeRequestBias }) => activeRequestBias,
  createLoadBalancer({ choiceCount }, hosts, { random, runtimeNumber: bias, words }) {
    if (!hosts.isWeighted) return new LeastRequest(hosts, words, choiceCount);
    // A negative bias counts as 1, as in Envoy.
    return new WeightedLeastRequest(hosts, words, bias < 0 ? 1 : bias, random);
  },
};
