// The load balancer of each policy, in its plain form and in the one for hosts of different weights.

import type { Random } from '../../common/random.js';
import { HashRing } from './hash-ring.js';
import { LeastRequest, WeightedLeastRequest } from './least-request.js';
import type { HashedList, HashSpec, LoadBalancer, PickList, PlainSpec } from './load-balancer.js';
import { MaglevTable } from './maglev-table.js';
import { RandomChoice, WeightedRandomChoice } from './random-choice.js';
import { RoundRobin, WeightedRoundRobin } from './round-robin.js';

/**
 * A load balancer over one list. `words` are the shared words that activeWords name; `bias` is how much active requests count
 * against a host's weight: less than 0 makes no sense and counts as 1, as in Envoy.
 */
export function createLoadBalancer(
  spec: PlainSpec,
  list: PickList,
  words: Int32Array,
  bias: number,
  random: Random,
): LoadBalancer {
  const isWeighted = list.weights.some((weight) => weight !== list.weights[0]);
  switch (spec.policy) {
    case 'round_robin':
      return isWeighted ? new WeightedRoundRobin(list, random) : new RoundRobin(list, random);
    case 'least_request':
      return isWeighted
        ? new WeightedLeastRequest(list, words, bias < 0 ? 1 : bias, random)
        : new LeastRequest(list, words, spec.choiceCount);
    case 'random':
      return isWeighted ? new WeightedRandomChoice(list) : new RandomChoice(list);
  }
}

/** The same for policies that pick by hash. Yields about every millisecond: what they need is large. */
export function* createHashBalancer(spec: HashSpec, list: HashedList): Generator<void, LoadBalancer> {
  return spec.policy === 'maglev' ? yield* MaglevTable.build(list, spec.tableSize) : yield* HashRing.build(list, spec);
}
