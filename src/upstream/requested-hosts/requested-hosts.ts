// The hosts of one cluster on one thread, where requests name their hosts: finds them by key, and requests missing ones from the
// primary, which adds them to the cluster for all threads.

import { forEachGuarded } from '../../log/internal-errors.js';
import type { HostSetData } from '../hosts/host-set.js';
import type { HostRequest } from './host-request.js';

/** A request that waits for its host. */
export interface HostWaiter {
  /**
   * Called once, in a turn of its own: when the host can be found, or when it is refused, with the reason for
   * %RESPONSE_CODE_DETAILS%.
   */
  hostSettled(refusal: string | undefined): void;
}

/** The thread's side of requests to the primary, and the turn in which waiting requests continue. */
export interface HostRequests {
  /** Reserves a place for a request that waits. Returns false if there is none. */
  tryWait(): boolean;
  /** Releases places. */
  stopWaiting(): void;
  request(request: HostRequest): void;
  beginTurn(): void;
}

const FAILED = 'internal error: a request that waited for its host cannot continue';

export class RequestedHosts {
  readonly #cluster: string;
  readonly #specVersion: number;
  readonly #keyAt: (index: number) => string;
  readonly #requests: HostRequests;
  readonly #byKey = new Map<string, number>();
  /** Keys by block: most hosts stay from one update to the next. */
  #keys = new Map<number, string>();
  readonly #waiting = new Map<string, Set<HostWaiter>>();
  /** Will continue in the next turn. */
  readonly #settled = new Map<HostWaiter, string | undefined>();

  /** @param keyAt returns the key of the host with that index in the current set */
  constructor(cluster: string, specVersion: number, keyAt: (index: number) => string, requests: HostRequests) {
    this.#cluster = cluster;
    this.#specVersion = specVersion;
    this.#keyAt = keyAt;
    this.#requests = requests;
  }

  /** Returns the index of the host in the current set; undefined: it must be requested. */
  find(key: string): number | undefined {
    return this.#byKey.get(key);
  }

  /** Requests a missing host. Returns false when too many wait. */
  request(key: string, waiter: HostWaiter): boolean {
    if (!this.#requests.tryWait()) return false;
    const waiters = this.#waiting.get(key);
    if (waiters !== undefined) {
      waiters.add(waiter);
      return true;
    }
    this.#waiting.set(key, new Set([waiter]));
    this.#requests.request({ cluster: this.#cluster, specVersion: this.#specVersion, key });
    return true;
  }

  /** Called when the waiter no longer waits; a no-op when it has been settled. */
  cancel(key: string, waiter: HostWaiter): void {
    if (this.#settled.delete(waiter)) return;
    const waiters = this.#waiting.get(key);
    if (waiters?.delete(waiter) !== true) return;
    this.#requests.stopWaiting();
    if (waiters.size === 0) this.#waiting.delete(key);
  }

  /** Called with a new set of hosts. */
  update({ blocks }: HostSetData): void {
    const keys = new Map<number, string>();
    this.#byKey.clear();
    for (let index = 0; index < blocks.length; index++) {
      const block = blocks[index]!;
      const key = this.#keys.get(block) ?? this.#keyAt(index);
      keys.set(block, key);
      this.#byKey.set(key, index);
    }
    this.#keys = keys;
    for (const key of [...this.#waiting.keys()]) if (this.#byKey.has(key)) this.settle(key);
  }

  /** Called when the host is found, or refused for a reason. */
  settle(key: string, refusal?: string): void {
    const waiters = this.#waiting.get(key);
    if (waiters === undefined) return;
    this.#waiting.delete(key);
    if (this.#settled.size === 0) setImmediate(() => this.#resume());
    for (const waiter of waiters) {
      this.#requests.stopWaiting();
      this.#settled.set(waiter, refusal);
    }
  }

  /** Called when the cluster is replaced or removed, or its hosts cannot be updated: those who wait look again. */
  close(): void {
    for (const key of [...this.#waiting.keys()]) this.settle(key);
  }

  #resume(): void {
    this.#requests.beginTurn();
    forEachGuarded([...this.#settled], FAILED, ([waiter, refusal]) => {
      if (this.#settled.delete(waiter)) waiter.hostSettled(refusal);
    });
  }
}
