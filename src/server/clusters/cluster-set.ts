// The clusters as the primary keeps them: loaded, resolved, and published to the workers when their hosts change.

import type { Cluster } from '../../config/generated/api.js';
import { getLogger } from '../../log/logger.js';
import { ClusterManagerStats } from '../../stats/layouts/cluster.js';
import type { Scope } from '../../stats/thread-stats.js';
import type { ClusterSnapshot } from '../../upstream/cluster-snapshot.js';
import type { InitManager, InitTarget } from '../init/init-manager.js';
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

  /** The clusters of the bootstrap begin to look for their hosts; `init` waits until each has, or cannot have them now. */
  load(configs: readonly Cluster[], init: InitManager): void {
    logger.info(`loading ${configs.length} cluster(s)`);
    const targets = new Map<PrimaryCluster, InitTarget>();
    const host: PrimaryClusterHost = {
      ...this.#host,
      changed: (cluster) => this.#noteChange(cluster),
      initialized: (cluster) => {
        this.#events.changed(cluster);
        targets.get(cluster)?.ready();
        targets.delete(cluster);
      },
    };
    for (const config of configs) {
      const cluster = new PrimaryCluster(config, host);
      this.#clusters.set(cluster.spec.name, cluster);
      targets.set(cluster, init.add(`cluster ${cluster.spec.name}`));
      this.#stats.increment(ClusterManagerStats.at.cluster_added);
    }
    for (const cluster of this.#clusters.values()) cluster.start();
  }

  /** All that the server waits for before it takes traffic are there. */
  initialized(): void {
    this.#stats.set(ClusterManagerStats.at.active_clusters, this.#clusters.size);
    this.#stats.set(ClusterManagerStats.at.warming_clusters, 0);
  }

  snapshots(): ClusterSnapshot[] {
    return snapshotsOf(this.#clusters.values());
  }

  /** Why requests cannot go to the cluster of that name; undefined: they can. */
  problemOfRoutesTo(name: string): string | undefined {
    const cluster = this.#clusters.get(name);
    if (cluster === undefined) return `unknown cluster '${name}'`;
    return cluster.servesTraffic
      ? undefined
      : `cluster '${name}' speaks HTTP/2, which is for gRPC calls of Baton's own`;
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
