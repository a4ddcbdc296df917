// LEAST_REQUEST: the host with the fewest active requests, counted over all workers.

import { EdfSchedule, type HostList, type LoadBalancer, type Random } from '../../sdk.js';

/** More random choices than so many for each host would only find the same ones again. */
const CHOICES_PER_HOST = 8;

/** Hosts of equal weight: the least busy of a few random ones. Looking at all of them would send every worker to the same host. */
export class LeastRequest implements LoadBalancer {
  readonly #hosts: Int32Array;
  readonly #activeWords: Int32Array;
  readonly #words: Int32Array;
  readonly #choices: number;

  constructor(list: HostList, words: Int32Array, choiceCount: number) {
    this.#hosts = list.hosts;
    this.#activeWords = list.activeWords;
    this.#words = words;
    this.#choices = Math.min(choiceCount, CHOICES_PER_HOST * list.hosts.length);
  }

  pick(random: Random): number {
    const count = this.#hosts.length;
    let best = random.below(count);
    if (count === 1) return this.#hosts[0]!;
    let fewest = Atomics.load(this.#words, this.#activeWords[best]!);
    for (let choice = 1; choice < this.#choices; choice++) {
      const item = random.below(count);
      const active = Atomics.load(this.#words, this.#activeWords[item]!);
      if (active < fewest) {
        best = item;
        fewest = active;
      }
    }
    return this.#hosts[best]!;
  }
}

/** Hosts of different weights: weighted rotation, in which a host's weight sinks with its active requests, as in Envoy. */
export class WeightedLeastRequest implements LoadBalancer {
  readonly #hosts: Int32Array;
  readonly #weights: Uint32Array;
  readonly #activeWords: Int32Array;
  readonly #words: Int32Array;
  readonly #bias: number;
  readonly #schedule: EdfSchedule;

  /** The effective weight is weight / (active requests + 1) ^ bias. */
  constructor(list: HostList, words: Int32Array, bias: number, random: Random) {
    this.#hosts = list.hosts;
    this.#weights = list.weights;
    this.#activeWords = list.activeWords;
    this.#words = words;
    this.#bias = bias;
    this.#schedule = new EdfSchedule(list.hosts.length, (item) => this.#effectiveWeight(item), random);
  }

  pick(): number {
    const item = this.#schedule.first();
    this.#schedule.advance(this.#effectiveWeight(item));
    return this.#hosts[item]!;
  }

  #effectiveWeight(item: number): number {
    const weight = this.#weights[item]!;
    const active = Atomics.load(this.#words, this.#activeWords[item]!) + 1;
    if (this.#bias === 1) return weight / active;
    return this.#bias === 0 ? weight : weight / active ** this.#bias;
  }
}
