// The stats scopes that a worker has received.

import type { Layout } from '../../stats/layout.js';
import { statScopeKey } from '../../stats/scope-prefix.js';
import type { Scope, ScopeRef, ThreadStats } from '../../stats/thread-stats.js';

export class ThreadScopes {
  readonly #stats: ThreadStats;
  /** By statScopeKey(). */
  readonly #refs = new Map<string, ScopeRef>();

  constructor(stats: ThreadStats) {
    this.#stats = stats;
  }

  add(refs: Readonly<Record<string, ScopeRef>>): void {
    for (const [key, ref] of Object.entries(refs)) this.#refs.set(key, ref);
  }

  remove(keys: readonly string[]): void {
    for (const key of keys) this.#refs.delete(key);
  }

  /** Returns a scope. Throws when the primary has not created it. */
  find(prefix: string, layout: Layout): Scope {
    const ref = this.#refs.get(statScopeKey(prefix, layout));
    if (ref === undefined) {
      const names = layout.entries.map(({ name }) => name).join(', ');
      throw new Error(
        `no stats scope '${prefix}' was made for ${names}: scopes() of an extension names what it asks for`,
      );
    }
    return this.#stats.scope(ref);
  }
}
