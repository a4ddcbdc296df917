// Scopes of stats that workers count in for listeners and filters: versions of a listener, and listeners with the same
// stat_prefix, have them together, and the last one that goes takes them along.

import type { Layout, LayoutDefinition } from '../../stats/layout.js';
import type { ScopeRequest, StatsStore } from '../../stats/store.js';
import type { Scope, ScopeRef } from '../../stats/thread-stats.js';

/** Scopes that somebody counts in. Given back in two steps: workers forget them, and then nobody writes there any more. */
export interface HeldScopes {
  /** As workers are told of them. */
  readonly refs: Readonly<Record<string, ScopeRef>>;
  /** Gives the prefixes that nobody else holds: workers that begin are told of them no longer. */
  retire(): string[];
  /** No worker writes there any more. */
  free(): void;
  /** Both at once: no worker has been told of them. */
  discard(): void;
}

export class WorkerScopes {
  readonly #store: StatsStore;
  readonly #all: Record<string, ScopeRef> = {};
  /** How often each prefix is held. */
  readonly #holders = new Map<string, number>();

  constructor(store: StatsStore) {
    this.#store = store;
  }

  /** What workers that begin are told of. */
  get all(): Readonly<Record<string, ScopeRef>> {
    return this.#all;
  }

  /** One that stays. */
  add(prefix: string, layout: Layout<LayoutDefinition>): Scope {
    const ref = this.#store.addScope(prefix, layout);
    this.#all[prefix] = ref;
    return this.#store.scope(ref);
  }

  /** One that is held. */
  ref(prefix: string): ScopeRef {
    return this.#all[prefix]!;
  }

  /** Makes what is not there yet, at 0. Throws, with nothing held, when another kind of stats has one of the names. */
  hold(requests: readonly ScopeRequest[]): HeldScopes {
    const added = this.#store.addScopes(requests);
    const refs = Object.fromEntries(added.map((ref, index) => [requests[index]!.prefix, ref]));
    for (const [prefix, ref] of Object.entries(refs)) {
      this.#holders.set(prefix, (this.#holders.get(prefix) ?? 0) + 1);
      this.#all[prefix] = ref;
    }
    const retire = () => Object.keys(refs).filter((prefix) => this.#retire(prefix));
    const free = () => {
      for (const ref of added) this.#store.removeScope(ref);
    };
    const discard = () => {
      retire();
      free();
    };
    return { refs, retire, free, discard };
  }

  #retire(prefix: string): boolean {
    const left = this.#holders.get(prefix)! - 1;
    if (left > 0) {
      this.#holders.set(prefix, left);
      return false;
    }
    this.#holders.delete(prefix);
    delete this.#all[prefix];
    return true;
  }
}
