// ROUND_ROBIN: picks hosts in turn, each as often as its weight requires.

import { EdfSchedule, type HostList, type LoadBalancer, type Random } from '../../sdk.js';
import type { SlowStart } from '../slow-start.js';

/** For hosts of equal weight: plain rotation from a random start, so that workers do not all begin with the same host. */
export class RoundRobin implements LoadBalancer {
  readonly #hosts: Int32Array;
  #next = 0;

  constructor(list: HostList, random: Random) {
    this.#hosts = list.hosts;
    this.#next = random.below(list.hosts.length);
  }

  pick(): number {
    const host = this.#hosts[this.#next]!;
    if (++this.#next === this.#hosts.length) this.#next = 0;
    return host;
  }
}

export class WeightedRoundRobin implements LoadBalancer {
  readonly #hosts: Int32Array;
  readonly #weights: Uint32Array;
  readonly #starting: SlowStart | undefined;
  readonly #schedule: EdfSchedule;

  /** @param starting hosts that do not have their whole weight yet */
  constructor(list: HostList, random: Random, starting?: SlowStart) {
    this.#hosts = list.hosts;
    this.#weights = list.weights;
    this.#starting = starting;
    this.#schedule = new EdfSchedule(list.hosts.length, (item) => this.#weightOf(item), random);
  }

  pick(): number {
    const item = this.#schedule.first();
    this.#schedule.advance(this.#weightOf(item));
    return this.#hosts[item]!;
  }

  #weightOf(item: number): number {
    const weight = this.#weights[item]!;
    return this.#starting === undefined ? weight : weight * this.#starting.partOf(item);
  }
}
