// Resources of a list's new hosts, allocated in steps before the list is applied. The caller of HostDirectory.prepare() owns it,
// and discards what no list has taken.

import { addressText } from '../../io/addresses/address.js';
import type { ScopeRef } from '../../stats/thread-stats.js';
import { keyOf, type ResolvedEndpoint } from './host.js';

/** What a host owns in shared memory. */
export interface HostResources {
  /** Index of its first HostWord word. */
  readonly block: number;
  /** Scope with layout HostStats. */
  readonly scope: ScopeRef;
}

export interface HostResourceSource {
  /** Allocates words and stats for a new host. Throws a RangeError when there is no room. */
  allocate(address: string): HostResources;
  /** Releases the resources of a removed host, which later snapshots do not contain. */
  retire(resources: HostResources): void;
}

/** Endpoints per step, and how many of them a new one counts for. */
const LOOKS_PER_STEP = 4096;
const COST_OF_NEW = 15;

export class HostPreparation {
  readonly #source: HostResourceSource;
  readonly #isKnown: (key: string) => boolean;
  readonly #made = new Map<string, HostResources>();

  /** `isKnown`: whether the host with this key (keyOf()) has resources already. */
  constructor(source: HostResourceSource, isKnown: (key: string) => boolean) {
    this.#source = source;
    this.#isKnown = isKnown;
  }

  /** Allocates in steps of about a millisecond. Throws a RangeError when there is no room. */
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

  /** Transfers the resources to the host with this key. */
  take(key: string): HostResources | undefined {
    const resources = this.#made.get(key);
    if (resources !== undefined) this.#made.delete(key);
    return resources;
  }

  /** Releases what was not taken. */
  discard(): void {
    for (const resources of this.#made.values()) this.#source.retire(resources);
    this.#made.clear();
  }
}
