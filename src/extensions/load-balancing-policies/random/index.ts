// envoy.load_balancing_policies.random: a random host, in proportion to weights.

import type { Random as RandomConfig } from '../../../config/generated/api.js';
import type { LoadBalancingPolicyExtension } from '../../sdk.js';
import { LOCALITY_ROWS, localityBalancing } from '../localities.js';
import { RandomChoice, WeightedRandomChoice } from './random-choice.js';

export const random: LoadBalancingPolicyExtension<RandomConfig> = {
  category: 'envoy.load_balancing_policies',
  name: 'envoy.load_balancing_policies.random',
  typeUrls: ['type.googleapis.com/envoy.extensions.load_balancing_policies.random.v3.Random'],
  implemented: {
    'envoy.extensions.load_balancing_policies.random.v3.Random': { locality_lb_config: true },
    ...LOCALITY_ROWS,
  },
  isZoneAware: true,
  isPredictable: true,
  localities: (config) => localityBalancing(config.locality_lb_config),
  createLoadBalancer: (_settings, hosts) =>
    hosts.isWeighted ? new WeightedRandomChoice(hosts) : new RandomChoice(hosts),
};
