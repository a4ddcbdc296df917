// What the new hosts of one list need in shared memory, made before the list is taken. It belongs to whoever asked for it, who
// gives back what no list has taken.

import { addressText } from '../../io/addresses/address.js';
import type { ScopeRef } from '../../stats/thread-stats.js';
import { keyOf, type ResolvedEndpoint } from './host.js';

/** What a host owns in shared memory. */
export interface HostResources {
  /** First of its HostWord words. */
  readonly block: number;
  /** Of HostStats. */
  readonly scope: ScopeRef;
}

export interface HostResourceSource {
  /** Words and stats for a new host, known as `address`. Throws a RangeError when there is no room. */
  allocate(address: string): HostResources;
  /** The host has left: no snapshot to come has it. */
  retire(resources: HostResources): void;
}

/** Endpoints that a step looks at, and how many of them one that is new counts for. */
const LOOKS_PER_STEP = 4096;
const COST_OF_NEW = 15;

export class HostPreparation {
  readonly #source: HostResourceSource;
  readonly #isKnown: (key: string) => boolean;
  readonly #made = new Map<string, HostResources>();

  /** `isKnown`: whether the host with this key (keyOf()) needs nothing more. */
  constructor(source: HostResourceSource, isKnown: (key: string) => boolean) {
    this.#source = source;
    this.#isKnown = isKnown;
  }

  /** A step takes a millisecond or so: the thread may do other things between them. Throws a RangeError when there is no room. */
  *steps(endpoints: readonly ResolvedEndpoint[]): Generator<void, void> {
    let seen = 0;
    for (const endpoint of endpoints) {
      const key = keyOf(endpoint);
      if (!this.#isKnown(key)) {
        this.#made.set(key, this.#source.allocate(addressText(endpoint.address)));
        seen += COST_OF_NEW;
      }
      if (++seen < LOOKS_PER_STEP) continue;
      seen = 0;
      yield;
    }
  }

  has(key: string): boolean {
    return this.#made.has(key);
  }

  /** For the host with this key, which owns it from now on. */
  take(key: string): HostResources | undefined {
    const resources = this.#made.get(key);
    if (resources !== undefined) this.#made.delete(key);
    return resources;
  }

  /** Gives back what nobody has taken. */
  discard(): void {
    for (const resources of this.#made.values()) this.#source.retire(resources);
    this.#made.clear();
  }
}
