// envoy.load_balancing_policies.random: a random host, in proportion to weights.

import { type LoadBalancingPolicyExtension, notImplemented } from '../../sdk.js';
import { RandomChoice, WeightedRandomChoice } from './random-choice.js';

export const random: LoadBalancingPolicyExtension = {
  category: 'envoy.load_balancing_policies',
  name: 'envoy.load_balancing_policies.random',
  typeUrls: ['type.googleapis.com/envoy.extensions.load_balancing_policies.random.v3.Random'],
  implemented: {
    'envoy.extensions.load_balancing_policies.random.v3.Random': { ...notImplemented('locality_lb_config') },
  },
  createLoadBalancer: (_settings, hosts) =>
    hosts.isWeighted ? new WeightedRandomChoice(hosts) : new RandomChoice(hosts),
};
