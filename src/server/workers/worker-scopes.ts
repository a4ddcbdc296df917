// Stat scopes in which workers count. Versions of a listener, and listeners with the same stat_prefix, share scopes; a scope is
// removed with its last holder.

import type { Layout, LayoutDefinition } from '../../stats/layout.js';
import { statScopeKey } from '../../stats/scope-prefix.js';
import type { ScopeRequest, StatsStore } from '../../stats/store.js';
import type { Scope, ScopeRef } from '../../stats/thread-stats.js';

/** Held scopes. They are released in two steps: retire() before the workers remove them, free() afterwards. */
export interface HeldScopes {
  /** By statScopeKey(), as sent to the workers. */
  readonly refs: Readonly<Record<string, ScopeRef>>;
  /** Removes the scopes from the data of starting workers. Returns the keys of scopes without another holder. */
  retire(): string[];
  /** Called when no worker writes to the scopes any more. */
  free(): void;
  /** Does both at once, for scopes that were never sent to workers. */
  discard(): void;
}

export class WorkerScopes {
  readonly #store: StatsStore;
  readonly #all: Record<string, ScopeRef> = {};
  /**
   * Number of holders of each scope that have not retired. The store keeps its own count until free(): a scope that is held
   * again before that keeps its values.
   */
  readonly #holders = new Map<string, number>();

  constructor(store: StatsStore) {
    this.#store = store;
  }

  /** All scopes, for starting workers. */
  get all(): Readonly<Record<string, ScopeRef>> {
    return this.#all;
  }

  /** Adds a scope for the life of the process. */
  add(prefix: string, layout: Layout<LayoutDefinition>): Scope {
    this.hold([{ prefix, layout }]);
    return this.scope(prefix, layout);
  }

  /** Returns a scope that is held. */
  ref(prefix: string, layout: Layout): ScopeRef {
    return this.#all[statScopeKey(prefix, layout)]!;
  }

  /** Returns the primary's part of a scope that is held. */
  scope(prefix: string, layout: Layout): Scope {
    return this.#store.scope(this.ref(prefix, layout));
  }

  /** New stats begin at 0. Throws, with nothing held, when a stat of another kind has one of the names. */
  hold(requests: readonly ScopeRequest[]): HeldScopes {
    const added = this.#store.addScopes(requests);
    const refs = Object.fromEntries(
      added.map((ref, index) => [statScopeKey(requests[index]!.prefix, requests[index]!.layout), ref]),
    );
    for (const [key, ref] of Object.entries(refs)) {
      this.#holders.set(key, (this.#holders.get(key) ?? 0) + 1);
      this.#all[key] = ref;
    }
    const retire = () => Object.keys(refs).filter((key) => this.#retire(key));
    const free = () => {
      for (const ref of added) this.#store.removeScope(ref);
    };
    const discard = () => {
      retire();
      free();
    };
    return { refs, retire, free, discard };
  }

  #retire(key: string): boolean {
    const left = this.#holders.get(key)! - 1;
    if (left > 0) {
      this.#holders.set(key, left);
      return false;
    }
    this.#holders.delete(key);
    delete this.#all[key];
    return true;
  }
}
