// The changes of a reload in order: dependencies are added before their users, and removed after them.

import { messageOf } from '../../common/errors/errors.js';
import { withinMs } from '../../common/time/within-ms.js';
import type { Cluster } from '../../config/generated/api.js';
import type { LayeredRuntime } from '../../runtime/layered-runtime.js';
import type { ClusterSet, StagedClusters } from '../clusters/cluster-set.js';
import type { Change } from './carry-out.js';
import type { ReloadPlan } from './comparison/comparison.js';
import type { DrainingClusters } from './draining-clusters.js';
import { ListenerChange, type ReloadedListeners, RouteChange } from './listener-changes.js';

export interface Reloaded extends ReloadedListeners {
  readonly runtime: Pick<LayeredRuntime, 'replaceStaticLayers'>;
  readonly clusters: Pick<ClusterSet, 'removeStatic' | 'byName' | 'stage' | 'warming'>;
  readonly drainingClusters: Pick<DrainingClusters, 'keep' | 'remove'>;
}

export function changesOf(plan: ReloadPlan, server: Reloaded): Change[] {
  const changes: Change[] = [];
  const { clusters, removedClusters, runtime } = plan;
  if (clusters.length > 0) changes.push(new ClusterChange(clusters, server));
  if (runtime !== undefined) changes.push(runtimeChange(runtime, server));
  if (changesListeners(plan)) changes.push(new ListenerChange(plan, server));
  if (plan.routes.length > 0) changes.push(new RouteChange(plan, server));
  if (removedClusters.length > 0) changes.push(clusterRemoval(removedClusters, server));
  return changes;
}

function changesListeners({ listeners, places, removedListeners }: ReloadPlan): boolean {
  return listeners.length + removedListeners.length > 0 || [...places].some(([before, after]) => before !== after);
}

/** Limit for new clusters to look for their hosts. */
const WARMING_MS = 60_000;

class ClusterChange implements Change {
  readonly #configs: readonly Cluster[];
  readonly #server: Reloaded;
  readonly #former: readonly Cluster[];
  #staged: StagedClusters | undefined;
  #isUsed = false;
  /** Clusters that an earlier reload has removed and that draining listeners still use. */
  #pendingRemovals: readonly string[] = [];

  constructor(configs: readonly Cluster[], server: Reloaded) {
    this.#configs = configs;
    this.#server = server;
    this.#former = configs.flatMap(({ name = '' }) => server.clusters.byName.get(name)?.config ?? []);
  }

  async prepare(): Promise<void> {
    this.#checkNames();
    this.#staged = this.#server.clusters.stage(this.#configs);
    await warm(this.#staged);
  }

  commit(): Promise<void> {
    // A dynamic one may have arrived while these were warming.
    this.#checkNames();
    this.#isUsed = true;
    this.#staged!.commit();
    this.#pendingRemovals = this.#server.drainingClusters.keep(this.#configs.map(({ name = '' }) => name));
    return this.#server.settle();
  }

  discard(): void {
    this.#staged?.discard();
  }

  #checkNames(): void {
    const { byName, warming } = this.#server.clusters;
    for (const { name = '' } of this.#configs) {
      const existing = warming.get(name) ?? byName.get(name);
      if (existing?.origin.isAddedViaApi) throw new Error(`a dynamic cluster has the name '${name}' already`);
    }
  }

  async undo(): Promise<void> {
    if (!this.#isUsed) return this.discard();
    try {
      await restore(this.#former, this.#server);
    } finally {
      const known = new Set(this.#former.map(({ name }) => name));
      const added = this.#configs.flatMap(({ name = '' }) => (known.has(name) ? [] : [name]));
      this.#server.clusters.removeStatic(added);
      this.#server.drainingClusters.remove(this.#pendingRemovals);
      await this.#server.settle();
    }
  }
}

async function warm({ ready, waiting }: StagedClusters): Promise<void> {
  // The late clusters are known only after the time is over, so withinMs() gets no text.
  await withinMs(ready, WARMING_MS, '').catch((error: unknown) => {
    const names = [...waiting].map((name) => `'${name}'`).join(', ');
    throw new Error(messageOf(error) || `no hosts within ${WARMING_MS / 1000} s for cluster ${names}`);
  });
}

/** Warms former versions again while the new ones serve, and then uses them with or without hosts. */
async function restore(former: readonly Cluster[], { clusters }: Reloaded): Promise<void> {
  const staged = clusters.stage(former);
  try {
    await warm(staged);
  } finally {
    staged.commit();
  }
}

/** Clusters are removed last, so nothing that could fail follows. */
function clusterRemoval(removed: readonly string[], server: Reloaded): Change {
  const { clusters, drainingClusters, settle } = server;
  const former = removed.flatMap((name) => clusters.byName.get(name)?.config ?? []);
  return {
    prepare: () => {},
    commit: () => {
      drainingClusters.remove(removed);
      return settle();
    },
    discard: () => {},
    undo: async () => {
      drainingClusters.keep(removed);
      await restore(former, server);
      await settle();
    },
  };
}

function runtimeChange({ after, before }: NonNullable<ReloadPlan['runtime']>, { runtime }: Reloaded): Change {
  return {
    prepare: () => {},
    commit: () => runtime.replaceStaticLayers(after),
    discard: () => {},
    undo: () => runtime.replaceStaticLayers(before),
  };
}
