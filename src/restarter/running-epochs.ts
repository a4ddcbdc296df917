// The running children, oldest first.

import type { Epoch } from './epoch.js';

/** An epoch and the third one after it have the same socket names (FACTS §8.1). */
const OVERLAPPING = 3;

export class RunningEpochs {
  readonly #epochs = new Set<Epoch>();

  get isEmpty(): boolean {
    return this.#epochs.size === 0;
  }

  [Symbol.iterator](): Iterator<Epoch> {
    return this.#epochs[Symbol.iterator]();
  }

  add(epoch: Epoch): void {
    this.#epochs.add(epoch);
  }

  delete(epoch: Epoch): void {
    this.#epochs.delete(epoch);
  }

  find(pid: number): Epoch | undefined {
    for (const epoch of this.#epochs) if (epoch.pid === pid) return epoch;
    return undefined;
  }

  /** Returns an epoch that holds the socket names that an epoch of this number needs. */
  holderOfNames(number: number): Epoch | undefined {
    return [...this.#epochs].find((epoch) => (number - epoch.number) % OVERLAPPING === 0 && !epoch.hasFreedNames);
  }

  /** Returns the epoch that this one had replaced, and that serves again after its death. */
  predecessorOf({ number }: Epoch): Epoch | undefined {
    return [...this.#epochs].find(
      (epoch) => epoch.number === number - 1 && epoch.phase === 'draining' && !epoch.isStopping,
    );
  }

  /** Returns the states, newest first: 'epoch 2 live, epoch 1 draining'. */
  describe(): string[] {
    const states = [...this.#epochs].reverse().map((epoch) => epoch.describe());
    return states.length === 0 ? ['no epoch runs'] : states;
  }
}
