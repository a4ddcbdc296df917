// CDS: clusters from a file or a management server. Valid clusters of an update are used even if others of it are refused.

import { messageOf } from '../../common/errors/errors.js';
import { shownName } from '../../common/text/shown.js';
import { isFileSource } from '../../config/fields/file-of-source.js';
import type { Cluster, ConfigSource } from '../../config/generated/api.js';
import { messageWithoutSecrets } from '../../config/text/secrets.js';
import { getLogger } from '../../log/logger.js';
import { ReloadStats } from '../../stats/layouts/xds.js';
import type { StatsStore } from '../../stats/store.js';
import type { Scope } from '../../stats/thread-stats.js';
import { AnswerGate } from '../../xds/answer-gate.js';
import { accepted, type DynamicState, REQUESTED, refused, rejected } from '../../xds/dynamic-state.js';
import { type Resource, removedNames, type Update } from '../../xds/resource.js';
import type { ConfigSources, Rejection, StepwiseUpdate, Watcher } from '../../xds/subscription.js';
import type { InitManager, InitTarget } from '../init/init-manager.js';
import type { ClusterSet } from './cluster-set.js';

const logger = getLogger('upstream');

const STAT_PREFIX = 'cluster_manager.cds.';

/** Clusters created or removed without yielding: some milliseconds of work. */
const WORK_PER_STEP = 128;
/** Cost of an unchanged cluster, relative to a changed one. */
const UNCHANGED_WORK = 1 / 32;

/** In larger updates the removed clusters are determined in a turn of their own. */
const MANY_CLUSTERS = 4096;

export class ClusterDiscovery implements Watcher<Cluster> {
  readonly #clusters: ClusterSet;
  /** Open while no cluster warms: then requests may be sent to every cluster of an update. */
  readonly #gate = new AnswerGate();
  readonly #states = new Map<string, DynamicState>();
  /** Resources whose names belong to static clusters. */
  readonly #shadowed = new Map<string, Resource<Cluster>>();
  readonly #store: StatsStore;
  /** Undefined until start(). */
  #reloads: Scope | undefined;
  #version = '';
  #target: InitTarget | undefined;

  constructor(clusters: ClusterSet, store: StatsStore) {
    this.#clusters = clusters;
    this.#store = store;
    clusters.onWarming = (isWarming) => this.#gate.set(!isWarming);
  }

  /** Starts the subscription to all clusters, or to a collection of that name. `init` waits for the first update and its clusters, or for the fetch timeout. */
  start(source: ConfigSource, sources: ConfigSources, init: InitManager, collection?: string): void {
    this.#clusters.useInit(init);
    this.#target = init.add('CDS', isFileSource(source));
    this.#reloads = this.#store.scope(this.#store.addScope(STAT_PREFIX, ReloadStats));
    sources.subscribe<Cluster>({
      source,
      type: 'cluster',
      names: collection === undefined ? '*' : new Set([collection]),
      statPrefix: STAT_PREFIX,
      watcher: this,
      gate: this.#gate,
    });
  }

  /** Version of the last update that changed a cluster; '' before the first. */
  get version(): string {
    return this.#version;
  }

  /** The state of each cluster by name. */
  get states(): ReadonlyMap<string, DynamicState> {
    return this.#states;
  }

  *update(update: Update<Cluster>): StepwiseUpdate {
    const gone = removedNames(update, [...this.#states.keys(), ...this.#shadowed.keys()]);
    logger.info(`cds: add ${update.resources.length} cluster(s), remove ${gone.size} cluster(s)`);
    if (update.resources.length > MANY_CLUSTERS) yield;
    // A resource without a name can never be reported as removed.
    this.#states.delete('');
    const rejections: Rejection[] = [];
    const names = new Set<string>();
    let changed = 0;
    let removed = 0;
    let work = 0;
    for (const resource of update.resources) {
      const { name } = resource;
      try {
        if (names.has(name)) throw new Error(`duplicate cluster ${name} found`);
        names.add(name);
        work += UNCHANGED_WORK;
        if (this.#set(resource)) {
          changed++;
          work++;
        }
      } catch (error) {
        rejections.push(this.#reject(resource, error));
        work++;
      }
      if (work < WORK_PER_STEP) continue;
      work = 0;
      yield;
    }
    for (const resource of update.refused) {
      this.#states.set(resource.name, refused(this.#stateOf(resource.name), resource));
      if ((work += UNCHANGED_WORK) < WORK_PER_STEP) continue;
      work = 0;
      yield;
    }
    for (const name of gone) {
      logger.debug(`cds: remove cluster '${shownName(name)}'`);
      if (this.#clusters.removeDynamic(name)) removed++;
      this.#states.delete(name);
      this.#shadowed.delete(name);
      if (++work < WORK_PER_STEP) continue;
      work = 0;
      yield;
    }
    const used = update.resources.length - rejections.length;
    logger.info(`cds: added/updated ${changed} cluster(s), skipped ${used - changed} unmodified cluster(s)`);
    if (changed + removed > 0) this.#version = update.version;
    if (rejections.length + update.refused.length === 0 && changed > 0) this.#reloaded();
    this.#target?.ready();
    return rejections;
  }

  /** As in Envoy, an update counts if it adds or changes a cluster and is accepted. */
  #reloaded(): void {
    this.#reloads?.increment(ReloadStats.at.config_reload);
    this.#reloads?.set(ReloadStats.at.config_reload_time_ms, Date.now());
  }

  /** Called when static clusters have been removed: dynamic ones with their names are used now. */
  staticsRemoved(names: readonly string[]): void {
    for (const name of names) {
      const resource = this.#shadowed.get(name);
      try {
        if (resource !== undefined) this.#set(resource);
      } catch (error) {
        this.#reject(resource!, error);
      }
    }
  }

  fetchTimedOut(): void {
    this.#target?.ready();
  }

  /** Returns whether anything has changed. Throws when the cluster cannot be used. */
  #set(resource: Resource<Cluster>): boolean {
    const { name } = resource;
    const outcome = this.#clusters.setDynamic(resource);
    logger.debug(`cds: add/update cluster '${shownName(name)}'${outcome === 'changed' ? '' : ' skipped'}`);
    if (outcome === 'static') {
      this.#shadowed.set(name, resource);
      return false;
    }
    this.#shadowed.delete(name);
    if (outcome === 'changed' || this.#stateOf(name).clientStatus !== 'ACKED')
      this.#states.set(name, accepted(resource));
    return outcome === 'changed';
  }

  #reject(resource: Resource<Cluster>, error: unknown): Rejection {
    const { message, name } = resource;
    const rejection = { name, details: messageWithoutSecrets(messageOf(error), message) };
    this.#states.set(name, rejected(this.#stateOf(name), resource, rejection));
    return rejection;
  }

  #stateOf(name: string): DynamicState {
    return this.#states.get(name) ?? REQUESTED;
  }
}
