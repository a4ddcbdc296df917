// The requests of one worker that wait for virtual hosts: the primary is asked once for each, and tells all workers when it
// is settled, behind the snapshot that has it. It is told as well when nobody waits any more: clients make up names.

import type { WorkerPort } from '../../extensions/factories.js';
import type { HostWaiter, OnDemandHosts } from '../../http/routing/tables/on-demand-hosts.js';
import { forEachGuarded } from '../../log/internal-errors.js';

/** Name of the port between the primary and the workers. */
export const ON_DEMAND_PORT = 'envoy.filters.http.on_demand';

/** A host of one route configuration: what the primary settles. */
export interface WantedHost {
  /** Id of the route configuration. */
  readonly routes: number;
  /** In lower case. */
  readonly host: string;
}

/** What workers say of a host. */
export interface HostQuestion extends WantedHost {
  /** False: no request of this worker waits for it any more. */
  readonly isWanted: boolean;
}

/** What workers say when requests have waited longest, and too many others do. */
export interface Dismissals {
  /** Id of the route configuration. */
  readonly routes: number;
  readonly dismissed: number;
}

/** Requests that may wait at one time: another one takes the place of the one that has waited longest. */
const MOST_WAITING = 1024;

const SETTLING = 'internal error: a request that waited for its virtual host cannot go on';

interface Waiting {
  readonly wanted: WantedHost;
  readonly waiters: Set<HostWaiter>;
}

export class AwaitedHosts {
  readonly #port: WorkerPort;
  /** Hosts that were asked for first come first. */
  readonly #hosts = new Map<string, Waiting>();
  #waiting = 0;
  /** They wait no longer, and are told in a turn of their own. */
  readonly #dismissed = new Set<HostWaiter>();
  /** How many since the primary was told, by the ids of their routes. */
  readonly #dismissals = new Map<number, number>();

  constructor(port: WorkerPort) {
    this.#port = port;
    port.onState = (state) => {
      if (state !== undefined) this.#settled(state as WantedHost);
    };
  }

  /** Those of the route configuration with this id. */
  of(routes: number): OnDemandHosts {
    return {
      request: (host, waiter) => this.#ask({ routes, host }, waiter),
      cancel: (host, waiter) => this.#cancel({ routes, host }, waiter),
    };
  }

  #ask(wanted: WantedHost, waiter: HostWaiter): void {
    if (this.#waiting >= MOST_WAITING) this.#dismissOne();
    const key = keyOf(wanted);
    const waiting = this.#hosts.get(key);
    if (waiting === undefined) {
      this.#hosts.set(key, { wanted, waiters: new Set([waiter]) });
      this.#say(wanted, true);
    } else waiting.waiters.add(waiter);
    this.#waiting++;
  }

  #cancel(wanted: WantedHost, waiter: HostWaiter): void {
    if (!this.#dismissed.delete(waiter)) this.#remove(wanted, waiter);
  }

  /** Who has waited longest goes on without an answer: clients cannot keep others from asking. */
  #dismissOne(): void {
    for (const { wanted, waiters } of this.#hosts.values()) {
      for (const waiter of waiters) {
        this.#remove(wanted, waiter);
        if (this.#dismissed.size === 0) setImmediate(() => this.#tellDismissed());
        this.#dismissed.add(waiter);
        this.#dismissals.set(wanted.routes, (this.#dismissals.get(wanted.routes) ?? 0) + 1);
        return;
      }
    }
  }

  #tellDismissed(): void {
    for (const [routes, dismissed] of this.#dismissals) {
      this.#port.send({ routes, dismissed } satisfies Dismissals);
    }
    this.#dismissals.clear();
    forEachGuarded(this.#dismissed, SETTLING, (waiter) => {
      this.#dismissed.delete(waiter);
      waiter.hostSettled();
    });
  }

  #remove(wanted: WantedHost, waiter: HostWaiter): void {
    const key = keyOf(wanted);
    const waiting = this.#hosts.get(key);
    if (!waiting?.waiters.delete(waiter)) return;
    this.#waiting--;
    if (waiting.waiters.size > 0) return;
    this.#hosts.delete(key);
    this.#say(wanted, false);
  }

  #say(wanted: WantedHost, isWanted: boolean): void {
    this.#port.send({ ...wanted, isWanted } satisfies HostQuestion);
  }

  #settled(wanted: WantedHost): void {
    const key = keyOf(wanted);
    const waiting = this.#hosts.get(key);
    if (waiting === undefined) return;
    this.#hosts.delete(key);
    this.#waiting -= waiting.waiters.size;
    forEachGuarded(waiting.waiters, SETTLING, (waiter) => waiter.hostSettled());
  }
}

function keyOf({ routes, host }: WantedHost): string {
  return `${routes}/${host}`;
}
