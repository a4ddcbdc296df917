// Clusters that requests on the workers wait for, until they are in use, or until their source has no such cluster or has been silent
// for too long.

import { shownName } from '../../../common/text/shown.js';
import { MAX_TIMER_MS } from '../../../common/time/max-timer.js';
import { PatientTimeout } from '../../../common/time/patient-timeout.js';
import { isGlob, parseXdstp } from '../../../config/fields/xdstp-name.js';
import type { PrimaryPort } from '../../../extensions/factories.js';
import { getLogger } from '../../../log/logger.js';
import { OnDemandClusterStats } from '../../../stats/layouts/xds.js';
import type { StatsStore } from '../../../stats/store.js';
import type { Scope } from '../../../stats/thread-stats.js';
import type { ClusterOutcome } from '../../../upstream/missing-clusters.js';
import type {
  ClusterDismissals,
  ClusterRelease,
  ClusterRequest,
  SettledCluster,
} from '../../../worker/clusters/awaited-clusters.js';
import type { ConfigSources } from '../../../xds/subscription.js';
import type { ClusterSet } from '../cluster-set.js';
import { ON_DEMAND_PREFIX, OnDemandSource } from './on-demand-source.js';

const logger = getLogger('upstream');

/** Limit of the sources, which configurations name. As in Envoy, one that is no longer named stays until another needs its place. */
const MAX_SOURCES = 64;

export interface OnDemandContext {
  readonly clusters: ClusterSet;
  readonly sources: ConfigSources;
  readonly store: StatsStore;
  /** The port of the workers: MISSING_CLUSTERS_PORT. */
  readonly port: PrimaryPort;
  /** Calls `callback` once, when all workers have applied what was published. */
  whenApplied(callback: () => void): void;
}

interface Pending {
  readonly timer: PatientTimeout;
  /** The workers that have the requests. */
  readonly workers: Set<number>;
}

export class OnDemandClusters {
  readonly #context: OnDemandContext;
  /** By ConfigSource in JSON; the one whose clusters were requested last is the last. */
  readonly #sources = new Map<string, OnDemandSource>();
  readonly #pending = new Map<string, Pending>();
  #stats: Scope | undefined;

  constructor(context: OnDemandContext) {
    this.#context = context;
    const { clusters, port } = context;
    port.onMessage = (worker, message) =>
      this.#handle(message as ClusterRequest | ClusterRelease | ClusterDismissals, worker);
    port.onWorkerDeath = (worker) => {
      for (const name of [...this.#pending.keys()]) this.#release(name, worker);
    };
    clusters.onActive = (name) => {
      if (this.#pending.has(name)) this.#available(name);
    };
  }

  close(): void {
    // Workers may still send requests, which would subscribe again.
    this.#context.port.onMessage = undefined;
    for (const { timer } of this.#pending.values()) timer.clear();
    this.#pending.clear();
    for (const source of this.#sources.values()) source.close();
    this.#sources.clear();
  }

  #handle(message: ClusterRequest | ClusterRelease | ClusterDismissals, worker: number): void {
    if ('released' in message) this.#release(message.released, worker);
    else if ('dismissed' in message) this.#count('requests_overflow', message.dismissed);
    else this.#request(message, worker);
  }

  #request({ cluster, from }: ClusterRequest, worker: number): void {
    if (namesMany(cluster)) return this.#publish(cluster, 'missing');
    const pending = this.#pending.get(cluster);
    if (pending !== undefined) {
      pending.workers.add(worker);
      return;
    }
    const timer = new PatientTimeout(() => this.#publish(cluster, 'timeout'), Math.min(MAX_TIMER_MS, from.timeoutMs));
    this.#pending.set(cluster, { timer, workers: new Set([worker]) });
    if (this.#context.clusters.byName.has(cluster)) return this.#available(cluster);
    logger.debug(`odcds: requesting cluster '${shownName(cluster)}'`);
    if (this.#requestFrom(from, cluster)) return;
    this.#count('clusters_overflow', 1);
    this.#publish(cluster, 'missing');
  }

  /** Returns false if there is no room for it. */
  #requestFrom({ source: config }: ClusterRequest['from'], cluster: string): boolean {
    const key = JSON.stringify(config);
    const known = this.#sources.get(key);
    if (known !== undefined) {
      this.#sources.delete(key);
      this.#sources.set(key, known);
      return known.request(cluster);
    }
    if (this.#sources.size >= MAX_SOURCES && !this.#makeRoom()) return false;
    const { clusters, sources } = this.#context;
    const source = new OnDemandSource(config, cluster, clusters, sources, {
      answered: (name, isThere) => this.#answered(name, isThere),
      forgotten: (name) => this.#forgotten(name),
    });
    this.#sources.set(key, source);
    return true;
  }

  /**
   * Closes a source that has no cluster, or else the one that was asked longest ago: requests for its clusters, if there are any, ask it again.
   * Returns false if all are being asked.
   */
  #makeRoom(): boolean {
    const idle = [...this.#sources].filter(([, source]) => source.isAnswered);
    const [key, source] = idle.find(([, each]) => each.isUnused) ?? idle[0] ?? [];
    if (key === undefined) return false;
    source!.remove();
    return this.#sources.delete(key);
  }

  /** A cluster that is not in use yet is settled when it is warm. Another source may have the cluster. */
  #answered(name: string, isThere: boolean): void {
    if (!this.#pending.has(name)) return;
    if (this.#context.clusters.byName.has(name)) this.#available(name);
    else if (!isThere) this.#publish(name, 'missing');
  }

  #forgotten(name: string): void {
    if (!this.#pending.has(name)) return;
    this.#count('clusters_overflow', 1);
    this.#publish(name, 'missing');
  }

  #release(name: string, worker: number): void {
    const pending = this.#pending.get(name);
    if (pending?.workers.delete(worker) !== true || pending.workers.size > 0) return;
    pending.timer.clear();
    this.#pending.delete(name);
  }

  /** Settles the requests for a cluster that is in use, once all workers have it. The timeout ends those of a worker that waits for a stuck one. */
  #available(cluster: string): void {
    const { clusters, whenApplied } = this.#context;
    clusters.flush();
    whenApplied(() => this.#publish(cluster, 'available'));
  }

  #publish(cluster: string, outcome: ClusterOutcome): void {
    this.#pending.get(cluster)?.timer.clear();
    this.#pending.delete(cluster);
    this.#context.port.publish({ cluster, outcome } satisfies SettledCluster);
  }

  #count(stat: 'clusters_overflow' | 'requests_overflow', by: number): void {
    const { store } = this.#context;
    this.#stats ??= store.scope(store.addScope(ON_DEMAND_PREFIX, OnDemandClusterStats));
    this.#stats.add(OnDemandClusterStats.at[stat], by);
  }
}

/** Returns whether a source would read the name as that of all its clusters, or of all in a collection. Clients may choose names. */
function namesMany(name: string): boolean {
  const parsed = parseXdstp(name);
  return name === '*' || (parsed !== undefined && isGlob(parsed));
}
