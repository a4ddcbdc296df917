// The wait of a request or connection for the host that it names.

import type { Cluster } from '../cluster.js';
import type { HostWaiter } from './requested-hosts.js';

export class HostWait {
  readonly #waiter: HostWaiter;
  #awaited: { readonly cluster: Cluster; readonly key: string } | undefined;
  /** Defined while the waiter continues: if the cluster does not have the host now, it does not get it. */
  #refusal: { readonly cluster: Cluster; readonly details: string } | undefined;

  constructor(waiter: HostWaiter) {
    this.#waiter = waiter;
  }

  get isWaiting(): boolean {
    return this.#awaited !== undefined;
  }

  /** Requests a missing host. Returns false if the cluster has refused it, or if too many wait. */
  begin(cluster: Cluster, key: string): boolean {
    if (this.refusalOf(cluster) !== undefined || !cluster.requestedHosts!.request(key, this.#waiter)) return false;
    this.#awaited = { cluster, key };
    return true;
  }

  /** Call from HostWaiter.hostSettled(): ends the wait, and calls `proceed`, which may look for the host again. */
  settle(details: string, proceed: () => void): void {
    this.#refusal = { cluster: this.#awaited!.cluster, details };
    this.#awaited = undefined;
    try {
      proceed();
    } finally {
      this.#refusal = undefined;
    }
  }

  /** Returns why that cluster does not get the host, while the waiter continues. */
  refusalOf(cluster: Cluster): string | undefined {
    return this.#refusal?.cluster === cluster ? this.#refusal.details : undefined;
  }

  /** The waiter no longer waits. */
  stop(): void {
    const awaited = this.#awaited;
    if (awaited === undefined) return;
    this.#awaited = undefined;
    awaited.cluster.requestedHosts!.cancel(awaited.key, this.#waiter);
  }
}
