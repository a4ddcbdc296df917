// The requests of one worker that wait for virtual hosts: the primary is asked once for each, and tells all workers when it
// is settled, behind the snapshot that has it.

import type { WorkerPort } from '../extensions/factories.js';
import type { HostWaiter, OnDemandHosts } from '../http/routing/on-demand-hosts.js';

/** Name of the port between the primary and the workers. */
export const ON_DEMAND_PORT = 'envoy.filters.http.on_demand';

/** A host of one route configuration: what workers ask for, and what the primary settles. */
export interface WantedHost {
  /** Id of the route configuration. */
  readonly routes: number;
  /** In lower case. */
  readonly host: string;
}

/** Requests that may wait at one time. */
const MOST_WAITING = 1024;

export class AwaitedHosts {
  readonly #port: WorkerPort;
  readonly #waiters = new Map<string, Set<HostWaiter>>();
  #waiting = 0;

  constructor(port: WorkerPort) {
    this.#port = port;
    port.onState = (state) => {
      if (state !== undefined) this.#settled(state as WantedHost);
    };
  }

  /** Those of the route configuration with this id. */
  of(routes: number): OnDemandHosts {
    return {
      ask: (host, waiter) => this.#ask({ routes, host }, waiter),
      cancel: (host, waiter) => this.#cancel({ routes, host }, waiter),
    };
  }

  #ask(wanted: WantedHost, waiter: HostWaiter): boolean {
    if (this.#waiting >= MOST_WAITING) return false;
    const key = keyOf(wanted);
    const waiters = this.#waiters.get(key);
    if (waiters === undefined) {
      this.#waiters.set(key, new Set([waiter]));
      this.#port.send(wanted);
    } else waiters.add(waiter);
    this.#waiting++;
    return true;
  }

  /** The answer still comes: who asks until then waits for it as well. */
  #cancel(wanted: WantedHost, waiter: HostWaiter): void {
    if (this.#waiters.get(keyOf(wanted))?.delete(waiter)) this.#waiting--;
  }

  #settled(wanted: WantedHost): void {
    const key = keyOf(wanted);
    const waiters = this.#waiters.get(key);
    if (waiters === undefined) return;
    this.#waiters.delete(key);
    this.#waiting -= waiters.size;
    for (const waiter of waiters) waiter.hostSettled();
  }
}

function keyOf({ routes, host }: WantedHost): string {
  return `${routes}/${host}`;
}
