// The clusters as the primary keeps them: loaded, resolved, and published to the workers when their hosts change.

import type { Cluster } from '../../config/generated/api.js';
import { getLogger } from '../../log/logger.js';
import { ClusterManagerStats } from '../../stats/layouts/cluster.js';
import type { Scope } from '../../stats/thread-stats.js';
import type { ClusterSnapshot } from '../../upstream/cluster-snapshot.js';
import { PrimaryCluster, type PrimaryClusterHost } from './primary-cluster.js';

const logger = getLogger('main');

export interface ClusterSetEvents {
  /** A cluster has its hosts for the first time, or other ones. */
  changed(cluster: PrimaryCluster): void;
  /** Changes of one turn, together. */
  publish(clusters: ClusterSnapshot[]): void;
}

/** Clusters whose gauges one step updates: less than a millisecond's work. */
const UPDATES_PER_STEP = 512;

export class ClusterSet {
  readonly #host: Omit<PrimaryClusterHost, 'changed' | 'initialized'>;
  readonly #stats: Scope;
  readonly #events: ClusterSetEvents;
  readonly #clusters = new Map<string, PrimaryCluster>();
  #changed = new Set<PrimaryCluster>();
  #isStopped = false;

  /** `stats` is the scope cluster_manager. */
  constructor(host: Omit<PrimaryClusterHost, 'changed' | 'initialized'>, stats: Scope, events: ClusterSetEvents) {
    this.#host = host;
    this.#stats = stats;
    this.#events = events;
  }

  get byName(): ReadonlyMap<string, PrimaryCluster> {
    return this.#clusters;
  }

  /** Resolves when each cluster has its hosts, or knows that it cannot have them now. */
  async load(configs: readonly Cluster[]): Promise<void> {
    logger.info(`loading ${configs.length} cluster(s)`);
    const waiting = new Set<PrimaryCluster>();
    await new Promise<void>((resolve) => {
      const host: PrimaryClusterHost = {
        ...this.#host,
        changed: (cluster) => this.#noteChange(cluster),
        initialized: (cluster) => {
          waiting.delete(cluster);
          this.#events.changed(cluster);
          if (waiting.size === 0) resolve();
        },
      };
      for (const config of configs) {
        const cluster = new PrimaryCluster(config, host);
        this.#clusters.set(cluster.spec.name, cluster);
        waiting.add(cluster);
        this.#stats.increment(ClusterManagerStats.at.cluster_added);
      }
      if (configs.length === 0) resolve();
      for (const cluster of this.#clusters.values()) cluster.start();
    });
    this.#stats.set(ClusterManagerStats.at.active_clusters, this.#clusters.size);
    this.#stats.set(ClusterManagerStats.at.warming_clusters, 0);
    logger.info('cm init: all clusters initialized');
    logger.info('all clusters initialized. initializing init manager');
  }

  snapshots(): ClusterSnapshot[] {
    return snapshotsOf(this.#clusters.values());
  }

  /** A part of them at a time: the primary may answer others between the steps. */
  *updateGauges(): Generator<void, void> {
    let updated = 0;
    for (const cluster of this.#clusters.values()) {
      cluster.updateGauges();
      if (++updated % UPDATES_PER_STEP === 0) yield;
    }
  }

  /** Nothing changes any more. */
  stop(): void {
    this.#isStopped = true;
    for (const cluster of this.#clusters.values()) cluster.stop();
  }

  #noteChange(cluster: PrimaryCluster): void {
    this.#events.changed(cluster);
    if (this.#changed.size === 0) setImmediate(() => this.#publish());
    this.#changed.add(cluster);
  }

  #publish(): void {
    const clusters = snapshotsOf(this.#changed);
    this.#changed = new Set();
    if (!this.#isStopped) this.#events.publish(clusters);
  }
}

/** What workers are told of these clusters. */
function snapshotsOf(clusters: Iterable<PrimaryCluster>): ClusterSnapshot[] {
  return [...clusters].filter((cluster) => cluster.servesTraffic).map((cluster) => cluster.snapshot());
}
