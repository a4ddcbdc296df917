// The requests and connections of one worker that wait for clusters. It requests each cluster from the primary once; the primary
// notifies all workers when the cluster is settled, after they have the snapshot that contains it. When nothing waits any more, the
// request is withdrawn, because clients can make up names.

import type { WorkerPort } from '../../extensions/factories.js';
import { forEachGuarded } from '../../log/internal-errors.js';
import type {
  ClusterOutcome,
  ClusterWaiter,
  MissingClusters,
  OnDemandSource,
} from '../../upstream/missing-clusters.js';

/** Name of the port between the primary and the workers. */
export const MISSING_CLUSTERS_PORT = 'baton.missing_clusters';

/** A worker's message: it has requests for a cluster. */
export interface ClusterRequest {
  readonly cluster: string;
  readonly from: OnDemandSource;
}

/** A worker's message: no request of it waits for the cluster any more. */
export interface ClusterRelease {
  readonly released: string;
}

/** A worker's message: so many requests were dismissed, because too many waited. */
export interface ClusterDismissals {
  readonly dismissed: number;
}

/** What the primary publishes about a cluster. */
export interface SettledCluster {
  readonly cluster: string;
  readonly outcome: ClusterOutcome;
}

/** Longer names are not requested: clients choose them. */
const MAX_NAME_LENGTH = 1024;
/** Maximum of waiting requests: another one replaces the one that has waited longest. */
const MAX_WAITING = 1024;

const SETTLE_FAILED = 'internal error: a request that waited for its cluster cannot continue';

export class AwaitedClusters implements MissingClusters {
  readonly #port: WorkerPort;
  readonly #beginTurn: () => void;
  /** By cluster, in the order of the requests. */
  readonly #waiting = new Map<string, Set<ClusterWaiter>>();
  #count = 0;
  /** Requests that no longer wait, and continue in a separate turn. One that continues may end others. */
  readonly #dismissed = new Set<ClusterWaiter>();
  /** The requests that are being settled. */
  #settling: Set<ClusterWaiter> | undefined;

  /** `beginTurn` begins a turn of the worker. */
  constructor(port: WorkerPort, beginTurn: () => void) {
    this.#port = port;
    this.#beginTurn = beginTurn;
    port.onState = (state) => {
      if (state !== undefined) this.#settled(state as SettledCluster);
    };
  }

  request(from: OnDemandSource, cluster: string, waiter: ClusterWaiter): void {
    if (cluster.length > MAX_NAME_LENGTH) return this.#dismiss(waiter);
    if (this.#count >= MAX_WAITING) this.#dismissOldest();
    const waiters = this.#waiting.get(cluster);
    if (waiters === undefined) {
      this.#waiting.set(cluster, new Set([waiter]));
      this.#port.send({ cluster, from } satisfies ClusterRequest);
    } else waiters.add(waiter);
    this.#count++;
  }

  cancel(name: string, waiter: ClusterWaiter): void {
    if (this.#settling?.delete(waiter) !== true && !this.#dismissed.delete(waiter)) this.#remove(name, waiter);
  }

  /** Dismisses the longest-waiting request, which continues without its cluster: clients cannot block others. */
  #dismissOldest(): void {
    for (const [name, waiters] of this.#waiting) {
      for (const waiter of waiters) {
        this.#remove(name, waiter);
        return this.#dismiss(waiter);
      }
    }
  }

  #dismiss(waiter: ClusterWaiter): void {
    if (this.#dismissed.size === 0) setImmediate(() => this.#settleDismissed());
    this.#dismissed.add(waiter);
  }

  #settleDismissed(): void {
    this.#beginTurn();
    this.#port.send({ dismissed: this.#dismissed.size } satisfies ClusterDismissals);
    forEachGuarded(this.#dismissed, SETTLE_FAILED, (waiter) => {
      this.#dismissed.delete(waiter);
      waiter.clusterSettled('missing');
    });
  }

  #remove(name: string, waiter: ClusterWaiter): void {
    const waiters = this.#waiting.get(name);
    if (!waiters?.delete(waiter)) return;
    this.#count--;
    if (waiters.size > 0) return;
    this.#waiting.delete(name);
    this.#port.send({ released: name } satisfies ClusterRelease);
  }

  #settled({ cluster, outcome }: SettledCluster): void {
    const waiters = this.#waiting.get(cluster);
    if (waiters === undefined) return;
    this.#waiting.delete(cluster);
    this.#count -= waiters.size;
    this.#settling = waiters;
    forEachGuarded(waiters, SETTLE_FAILED, (waiter) => {
      waiters.delete(waiter);
      waiter.clusterSettled(outcome);
    });
    this.#settling = undefined;
  }
}
