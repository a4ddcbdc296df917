// RANDOM: picks a random host, with a probability in proportion to its weight.

import type { HostList, LoadBalancer, Random } from '../../sdk.js';

export class RandomChoice implements LoadBalancer {
  readonly #hosts: Int32Array;

  constructor(list: HostList) {
    this.#hosts = list.hosts;
  }

  pick(random: Random): number {
    return this.#hosts[random.below(this.#hosts.length)]!;
  }
}

/** The alias method (Vose 1991): two table look-ups for any number of hosts. */
export class WeightedRandomChoice implements LoadBalancer {
  readonly #hosts: Int32Array;
  /** Column i is host i with this probability, and host #alias[i] otherwise. */
  readonly #probability: Float64Array;
  readonly #alias: Int32Array;

  constructor(list: HostList) {
    const count = list.hosts.length;
    this.#hosts = list.hosts;
    this.#probability = new Float64Array(count).fill(1);
    this.#alias = Int32Array.from({ length: count }, (_, item) => item);
    const sum = list.weights.reduce((total, weight) => total + weight, 0);
    const share = Float64Array.from(list.weights, (weight) => (weight * count) / sum);
    const small: number[] = [];
    const large: number[] = [];
    for (let item = 0; item < count; item++) (share[item]! < 1 ? small : large).push(item);
    while (small.length > 0 && large.length > 0) {
      const less = small.pop()!;
      const more = large.pop()!;
      this.#probability[less] = share[less]!;
      this.#alias[less] = more;
      share[more]! -= 1 - share[less]!;
      (share[more]! < 1 ? small : large).push(more);
    }
  }

  pick(random: Random): number {
    const column = random.below(this.#hosts.length);
    return this.#hosts[random.fraction() < this.#probability[column]! ? column : this.#alias[column]!]!;
  }
}
