// A worker's pools of connections to one host, one for each priority and protocol in use. Where connections depend on requests, those of
// other traits have their own.

import type { Priority } from '../../common/priority.js';
import type { PoolProtocol } from '../../http/codec/connections.js';
import type { HttpPool } from './http-pool.js';

export class HostPools {
  /** Pools of requests without connection options. */
  readonly #common: HttpPool[] = [];
  /** Undefined: no other requests were sent. */
  #named: Map<string, HttpPool[]> | undefined;

  /** `key`: see ConnectionTraits. */
  find(priority: Priority, protocol: PoolProtocol, key: string | undefined): HttpPool | undefined {
    const pools = key === undefined ? this.#common : (this.#named?.get(key) ?? []);
    for (const pool of pools) if (pool.priority === priority && pool.protocol === protocol) return pool;
    return undefined;
  }

  add(pool: HttpPool): void {
    const key = pool.options.traits?.key;
    if (key === undefined) this.#common.push(pool);
    else {
      this.#named ??= new Map();
      this.#named.set(key, [...(this.#named.get(key) ?? []), pool]);
    }
  }

  /** Forgets the empty pools of a key. Clients determine keys, so that there may be any number. */
  forget(key: string): void {
    const left = (this.#named?.get(key) ?? []).filter((pool) => !pool.isEmpty);
    if (left.length > 0) this.#named!.set(key, left);
    else this.#named?.delete(key);
  }

  /** Returns a copy: callers may end pools. */
  all(): HttpPool[] {
    return this.#named === undefined ? [...this.#common] : [...this.#common, ...[...this.#named.values()].flat()];
  }
}
