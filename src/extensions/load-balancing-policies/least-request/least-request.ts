// LEAST_REQUEST: picks the host with the fewest active requests, counted over all workers.

import { EdfSchedule, type HostList, type LoadBalancer, type Random } from '../../sdk.js';
import type { SlowStart } from '../slow-start.js';

/** Maximum random choices per host: more would only repeat hosts. */
const CHOICES_PER_HOST = 8;

/**
 * For hosts of equal weight: the least busy of a few random ones. Comparing all hosts would send every worker to the same one.
 */
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

/** For hosts of equal weight: the least busy of all, or one of them at random. It takes time in proportion to their number. */
export class LeastOfAll implements LoadBalancer {
  readonly #hosts: Int32Array;
  readonly #activeWords: Int32Array;
  readonly #words: Int32Array;

  constructor(list: HostList, words: Int32Array) {
    this.#hosts = list.hosts;
    this.#activeWords = list.activeWords;
    this.#words = words;
  }

  pick(random: Random): number {
    let best = 0;
    let fewest = Number.POSITIVE_INFINITY;
    let equals = 0;
    for (let item = 0; item < this.#hosts.length; item++) {
      const active = Atomics.load(this.#words, this.#activeWords[item]!);
      if (active > fewest) continue;
      equals = active < fewest ? 1 : equals + 1;
      // Each of the equals is chosen with the same probability.
      if (random.below(equals) === 0) best = item;
      fewest = active;
    }
    return this.#hosts[best]!;
  }
}

/** For hosts of different weights: weighted round robin in which active requests reduce a host's weight, as in Envoy. */
export class WeightedLeastRequest implements LoadBalancer {
  readonly #hosts: Int32Array;
  readonly #weights: Uint32Array;
  readonly #activeWords: Int32Array;
  readonly #words: Int32Array;
  readonly #bias: number;
  readonly #starting: SlowStart | undefined;
  readonly #schedule: EdfSchedule;

  /**
   * The effective weight is weight / (active requests + 1) ^ bias.
   * @param starting hosts that do not have their whole weight yet
   */
  constructor(list: HostList, words: Int32Array, bias: number, random: Random, starting?: SlowStart) {
    this.#starting = starting;
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
    const weight = this.#weights[item]! * (this.#starting?.partOf(item) ?? 1);
    const active = Atomics.load(this.#words, this.#activeWords[item]!) + 1;
    if (this.#bias === 1) return weight / active;
    return this.#bias === 0 ? weight : weight / active ** this.#bias;
  }
}
