// Scopes of stats that workers count in. Versions of a listener, and listeners with the same stat_prefix, share scopes; these go with
// the last holder.

import type { Layout, LayoutDefinition } from '../../stats/layout.js';
import { statScopeKey } from '../../stats/scope-prefix.js';
import type { ScopeRequest, StatsStore } from '../../stats/store.js';
import type { Scope, ScopeRef } from '../../stats/thread-stats.js';

/** Scopes that are held. They are given back in two steps: retire() before the workers forget them, free() after that. */
export interface HeldScopes {
  /** By statScopeKey(), as the workers are told of them. */
  readonly refs: Readonly<Record<string, ScopeRef>>;
  /** Workers that start are not told of them any more. Returns the keys of those that nobody else holds. */
  retire(): string[];
  /** Call it when no worker writes there any more. */
  free(): void;
  /** Both at once, where no worker has been told of them. */
  discard(): void;
}

export class WorkerScopes {
  readonly #store: StatsStore;
  readonly #all: Record<string, ScopeRef> = {};
  /**
   * How often each of them is held by somebody whom workers have been told of. The store counts until free(): a scope that is held
   * anew before that goes on with its numbers.
   */
  readonly #holders = new Map<string, number>();

  constructor(store: StatsStore) {
    this.#store = store;
  }

  /** All scopes, for workers that start. */
  get all(): Readonly<Record<string, ScopeRef>> {
    return this.#all;
  }

  /** Adds a scope for the life of the process. */
  add(prefix: string, layout: Layout<LayoutDefinition>): Scope {
    this.hold([{ prefix, layout }]);
    return this.#store.scope(this.ref(prefix, layout));
  }

  /** Of a scope that somebody holds. */
  ref(prefix: string, layout: Layout): ScopeRef {
    return this.#all[statScopeKey(prefix, layout)]!;
  }

  /** Stats that are new begin at 0. Throws, with nothing held, when a stat of another kind has one of the names. */
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
