// envoy.load_balancing_policies.least_request: the host with the fewest active requests among a few random ones.

import type { LeastRequest as LeastRequestConfig } from '../../../config/generated/api.js';
import { byValue, type LoadBalancingPolicyExtension } from '../../sdk.js';
import { LOCALITY_ROWS, localityBalancing } from '../localities.js';
import { SLOW_START_ROWS, type SlowStartSettings, slowStart, slowStartSettings } from '../slow-start.js';
import { LeastOfAll, LeastRequest, WeightedLeastRequest } from './least-request.js';

export interface LeastRequestSettings {
  /** Random hosts that are compared for a request. */
  readonly choiceCount: number;
  /** All hosts are compared instead. */
  readonly scansAll: boolean;
  /** The exponent by which active requests reduce a host's weight. */
  readonly activeRequestBias: { readonly runtimeKey: string; readonly value: number };
  readonly slowStart?: SlowStartSettings | undefined;
}

export const leastRequest: LoadBalancingPolicyExtension<LeastRequestConfig, LeastRequestSettings> = {
  category: 'envoy.load_balancing_policies',
  name: 'envoy.load_balancing_policies.least_request',
  typeUrls: ['type.googleapis.com/envoy.extensions.load_balancing_policies.least_request.v3.LeastRequest'],
  implemented: {
    'envoy.extensions.load_balancing_policies.least_request.v3.LeastRequest': {
      choice_count: true,
      active_request_bias: true,
      selection_method: byValue({ N_CHOICES: true, FULL_SCAN: true }),
      locality_lb_config: true,
      slow_start_config: true,
      enable_full_scan: true,
    },
    ...LOCALITY_ROWS,
    ...SLOW_START_ROWS,
  },
  countsActiveRequests: true,
  validate({ active_request_bias: bias }, report) {
    const value = bias?.default_value ?? 0;
    if (Number(value) >= 0 && Number.isFinite(Number(value))) return;
    report('active_request_bias.default_value', `it must be a number of at least 0, found ${value}`);
  },
  settings(config) {
    const { active_request_bias: bias, choice_count: choiceCount = 2, slow_start_config: slow } = config;
    const scansAll = config.enable_full_scan === true || config.selection_method === 'FULL_SCAN';
    const value = bias === undefined ? 1 : Number(bias.default_value ?? 0);
    const slowStart = slowStartSettings(slow);
    return { choiceCount, scansAll, activeRequestBias: { runtimeKey: bias?.runtime_key ?? '', value }, slowStart };
  },
  isZoneAware: true,
  localities: (config) => localityBalancing(config.locality_lb_config),
  runtimeNumber: ({ activeRequestBias }) => activeRequestBias,
  needsHealthTimes: (settings) => settings.slowStart !== undefined,
  createLoadBalancer({ choiceCount, scansAll, slowStart: slow }, hosts, context) {
    const { random, runtimeNumber: bias, words } = context;
    const starting = slowStart(slow, hosts, context);
    if (starting === undefined && !hosts.isWeighted) {
      return scansAll ? new LeastOfAll(hosts, words) : new LeastRequest(hosts, words, choiceCount);
    }
    // A negative bias counts as 1, as in Envoy.
    return new WeightedLeastRequest(hosts, words, bias < 0 ? 1 : bias, random, starting);
  },
};
