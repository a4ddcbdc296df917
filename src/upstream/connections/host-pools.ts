// A worker's pools of connections to one host, one for each priority and protocol in use. Where connections depend on the host that
// requests name, each name has its own.

import type { Priority } from '../../common/priority.js';
import type { PoolProtocol } from '../../http/codec/connections.js';
import type { HttpPool } from './http-pool.js';

export class HostPools {
  /** Of requests whose name does not matter. */
  readonly #common: HttpPool[] = [];
  /** Undefined: no other requests were sent. */
  #named: Map<string, HttpPool[]> | undefined;

  /** `authority`: see ConnectOptions. */
  find(priority: Priority, protocol: PoolProtocol, authority: string | undefined): HttpPool | undefined {
    const pools = authority === undefined ? this.#common : (this.#named?.get(authority) ?? []);
    for (const pool of pools) if (pool.priority === priority && pool.protocol === protocol) return pool;
    return undefined;
  }

  add(pool: HttpPool): void {
    const { authority } = pool.options;
    if (authority === undefined) this.#common.push(pool);
    else {
      this.#named ??= new Map();
      this.#named.set(authority, [...(this.#named.get(authority) ?? []), pool]);
    }
  }

  /** Forgets the empty pools of a name. Clients choose names, so that there may be any number. */
  forget(authority: string): void {
    const left = (this.#named?.get(authority) ?? []).filter((pool) => !pool.isEmpty);
    if (left.length > 0) this.#named!.set(authority, left);
    else this.#named?.delete(authority);
  }

  /** Returns a copy: callers may end pools. */
  all(): HttpPool[] {
    return this.#named === undefined ? [...this.#common] : [...this.#common, ...[...this.#named.values()].flat()];
  }
}
