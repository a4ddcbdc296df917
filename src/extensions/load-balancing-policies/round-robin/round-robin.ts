// ROUND_ROBIN: picks hosts in turn, each as often as its weight requires.

import { EdfSchedule, type HostList, type LoadBalancer, type Random } from '../../sdk.js';

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
  readonly #schedule: EdfSchedule;

  constructor(list: HostList, random: Random) {
    this.#hosts = list.hosts;
    this.#weights = list.weights;
    this.#schedule = new EdfSchedule(list.hosts.length, (item) => list.weights[item]!, random);
  }

  pick(): number {
    const item = this.#schedule.first();
    this.#schedule.advance(this.#weights[item]!);
    return this.#hosts[item]!;
  }
}
