// The scopes of stats that a worker has been told of, by prefix.

import type { Layout } from '../../stats/layout.js';
import type { Scope, ScopeRef, ThreadStats } from '../../stats/thread-stats.js';

export class ThreadScopes {
  readonly #stats: ThreadStats;
  readonly #refs = new Map<string, ScopeRef>();

  constructor(stats: ThreadStats) {
    this.#stats = stats;
  }

  add(refs: Readonly<Record<string, ScopeRef>>): void {
    for (const [prefix, ref] of Object.entries(refs)) this.#refs.set(prefix, ref);
  }

  remove(prefixes: readonly string[]): void {
    for (const prefix of prefixes) this.#refs.delete(prefix);
  }

  /** Throws when the primary has not made it. */
  find(prefix: string, layout: Layout): Scope {
    const ref = this.#refs.get(prefix);
    if (ref === undefined) {
      const names = layout.entries.map(({ name }) => name).join(', ');
      throw new Error(
        `no stats scope '${prefix}' was made for ${names}: scopes() of an extension names what it asks for`,
      );
    }
    return this.#stats.scope(ref);
  }
}
