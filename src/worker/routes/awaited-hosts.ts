// The requests of one worker that wait for virtual hosts. It requests each host from the primary once; the primary notifies all
// workers when the host is settled, after the snapshot that contains it. When no request waits any more, it withdraws its
// request, because clients can make up names.

import type { WorkerPort } from '../../extensions/factories.js';
import type { HostWaiter, OnDemandHosts } from '../../http/routing/tables/on-demand-hosts.js';
import { forEachGuarded } from '../../log/internal-errors.js';

/** Name of the port between the primary and the workers. */
export const ON_DEMAND_PORT = 'envoy.filters.http.on_demand';

/** A host of one route configuration, which the primary settles. */
export interface RequestedHost {
  /** Id of the route configuration. */
  readonly routes: number;
  /** In lower case. */
  readonly host: string;
}

/** A worker's message about a host. */
export interface HostRequest extends RequestedHost {
  /** False: no request of this worker waits for it any more. */
  readonly isWanted: boolean;
}

/** A worker's message about dismissed requests: the longest-waiting ones when too many wait. */
export interface Dismissals {
  /** Id of the route configuration. */
  readonly routes: number;
  readonly dismissed: number;
}

/** Maximum of waiting requests: another one replaces the one that has waited longest. */
const MAX_WAITING = 1024;

const SETTLE_FAILED = 'internal error: a request that waited for its virtual host cannot continue';

interface Waiting {
  readonly requested: RequestedHost;
  readonly waiters: Set<HostWaiter>;
}

export class AwaitedHosts {
  readonly #port: WorkerPort;
  /** In the order of the requests. */
  readonly #hosts = new Map<string, Waiting>();
  #waiting = 0;
  /** Requests that no longer wait, and are resumed in a separate turn. */
  readonly #dismissed = new Set<HostWaiter>();
  /** Their number since the last report to the primary, by the ids of their routes. */
  readonly #dismissals = new Map<number, number>();

  constructor(port: WorkerPort) {
    this.#port = port;
    port.onState = (state) => {
      if (state !== undefined) this.#settled(state as RequestedHost);
    };
  }

  /** Returns the interface for the route configuration with this id. */
  of(routes: number): OnDemandHosts {
    return {
      request: (host, waiter) => this.#request({ routes, host }, waiter),
      cancel: (host, waiter) => this.#cancel({ routes, host }, waiter),
    };
  }

  #request(requested: RequestedHost, waiter: HostWaiter): void {
    if (this.#waiting >= MAX_WAITING) this.#dismissOne();
    const key = keyOf(requested);
    const waiting = this.#hosts.get(key);
    if (waiting === undefined) {
      this.#hosts.set(key, { requested, waiters: new Set([waiter]) });
      this.#notify(requested, true);
    } else waiting.waiters.add(waiter);
    this.#waiting++;
  }

  #cancel(requested: RequestedHost, waiter: HostWaiter): void {
    if (!this.#dismissed.delete(waiter)) this.#remove(requested, waiter);
  }

  /** Dismisses the longest-waiting request, which continues without an answer: clients cannot block others. */
  #dismissOne(): void {
    for (const { requested, waiters } of this.#hosts.values()) {
      for (const waiter of waiters) {
        this.#remove(requested, waiter);
        if (this.#dismissed.size === 0) setImmediate(() => this.#settleDismissed());
        this.#dismissed.add(waiter);
        this.#dismissals.set(requested.routes, (this.#dismissals.get(requested.routes) ?? 0) + 1);
        return;
      }
    }
  }

  #settleDismissed(): void {
    for (const [routes, dismissed] of this.#dismissals) {
      this.#port.send({ routes, dismissed } satisfies Dismissals);
    }
    this.#dismissals.clear();
    forEachGuarded(this.#dismissed, SETTLE_FAILED, (waiter) => {
      this.#dismissed.delete(waiter);
      waiter.hostSettled();
    });
  }

  #remove(requested: RequestedHost, waiter: HostWaiter): void {
    const key = keyOf(requested);
    const waiting = this.#hosts.get(key);
    if (!waiting?.waiters.delete(waiter)) return;
    this.#waiting--;
    if (waiting.waiters.size > 0) return;
    this.#hosts.delete(key);
    this.#notify(requested, false);
  }

  #notify(requested: RequestedHost, isWanted: boolean): void {
    this.#port.send({ ...requested, isWanted } satisfies HostRequest);
  }

  #settled(requested: RequestedHost): void {
    const key = keyOf(requested);
    const waiting = this.#hosts.get(key);
    if (waiting === undefined) return;
    this.#hosts.delete(key);
    this.#waiting -= waiting.waiters.size;
    forEachGuarded(waiting.waiters, SETTLE_FAILED, (waiter) => waiter.hostSettled());
  }
}

function keyOf({ routes, host }: RequestedHost): string {
  return `${routes}/${host}`;
}
