// The listeners on the primary, which binds their sockets before any worker accepts on them. The interface for the server, LDS
// and reloads.

import { randomUUID } from 'node:crypto';
import { shownName } from '../../common/text/shown.js';
import type { Listener } from '../../config/generated/api.js';
import { getLogger } from '../../log/logger.js';
import { ListenerManagerStats, ListenerStats } from '../../stats/layouts/listener.js';
import type { Scope } from '../../stats/thread-stats.js';
import type { ListenerSnapshot } from '../../worker/messages/messages.js';
import { accepted } from '../../xds/dynamic-state.js';
import type { DrainDefaults } from '../draining/drain-manager.js';
import type { DrainReach } from '../draining/drain-reach.js';
import { ListenerDrains } from '../draining/listener-drains.js';
import type { InitManager } from '../init/init-manager.js';
import type { Primary } from '../primary.js';
import type { Publish } from '../workers/snapshots.js';
import { addressSwaps, boundAddressOf, hasOneOf } from './changes/addresses.js';
import { DrainingListeners } from './changes/draining-listeners.js';
import { ListenerRollout } from './changes/listener-rollout.js';
import type { ListenerUpdate } from './changes/listener-update.js';
import { type ListenerChange, prepare } from './changes/prepare-change.js';
import { latestOf, PresentListeners, versionsOf } from './changes/present-listeners.js';
import { Replacement } from './changes/replacement.js';
import { type ListenerEvents, UpdateSteps } from './changes/update-steps.js';
import { SocketOffers } from './socket-offers.js';
import type { FilterParts } from './version/filter-parts.js';
import { ListenerBlocks } from './version/listener-blocks.js';
import type { ListenerContext, ListenerSpec, PrimaryListener } from './version/primary-listener.js';

const logger = getLogger('main');

/** A possible change: everything that can fail is done. The caller calls apply() or discard(), once. */
export interface ListenerPlan {
  /** Names of the listeners that apply() changes. */
  readonly names: readonly string[];
  /** Resolves when all init targets of the change are ready, or when `ended` is aborted. */
  whenReady(ended: AbortSignal): Promise<void>;
  /** Resolves when all parts of the change are in use or have failed, with the errors. */
  apply(): Promise<unknown[]>;
  discard(): void;
}

export class ListenerSet implements ListenerEvents {
  readonly drains: ListenerDrains;
  /** The active listeners' sockets, for a child process. */
  readonly offers: SocketOffers;
  onAccept: ListenerEvents['onAccept'] = () => {};
  onFailure: ListenerEvents['onFailure'] = () => {};
  readonly #primary: Primary;
  readonly #stats: Scope;
  readonly #publish: Publish;
  readonly #context: ListenerContext;
  readonly #present: PresentListeners;
  readonly #rollout: ListenerRollout;
  readonly #steps: UpdateSteps;
  readonly #replacement: Replacement;

  constructor(primary: Primary, parts: FilterParts, drainDefaults: DrainDefaults, publish: Publish) {
    this.#primary = primary;
    this.#stats = primary.listenerManagerStats;
    this.#publish = publish;
    const { concurrency, extensions, scopes, shim, tls, words } = primary;
    const isInHotRestart = () => primary.epoch.parentSockets !== undefined || primary.takeOver.isBeginning;
    const blocks = new ListenerBlocks(words);
    this.#context = { blocks, concurrency, extensions, isInHotRestart, parts, scopes, shim, tls, words };
    this.drains = new ListenerDrains(primary, drainDefaults, this);
    this.#rollout = new ListenerRollout(primary, this.drains.manager, publish);
    this.#present = new PresentListeners(new DrainingListeners(primary.takeOver, this.drains, this.#rollout));
    this.#steps = new UpdateSteps(primary, this.#present, this.#rollout, this);
    this.offers = new SocketOffers(this.#present.active);
    this.#replacement = new Replacement(primary, this.#present, this.#rollout, this.drains, {
      drop: (name) => this.#steps.drop(name),
      set: (spec) => this.#setHeld(spec),
      count: () => this.#steps.count(),
      onAccept: () => this.onAccept(),
    });
  }

  /** Connections are accepted; before that, active listeners only warm. */
  get isRunning(): boolean {
    return this.#present.isRunning;
  }

  /** The active listeners. */
  get byName(): ReadonlyMap<string, PrimaryListener> {
    return this.#present.active;
  }

  /** Updates that are not in use yet, by name. */
  get warming(): ReadonlyMap<string, ListenerUpdate> {
    return this.#present.warming;
  }

  /** What updates have replaced and still drains. */
  get draining(): DrainingListeners {
    return this.#present.draining;
  }

  /** Returns those of `names` whose listeners have an address of some listener in `set`. */
  holdersOfAddresses(names: Iterable<string>, set: readonly Listener[]): Set<string> {
    const addresses = new Set(set.map(boundAddressOf));
    const present = (name: string) => versionsOf(this.#present.stagesOf(name));
    return new Set([...names].filter((name) => present(name).some((version) => hasOneOf(version, addresses))));
  }

  /** Returns the latest configuration of the listener, in use or not; undefined when there is none. */
  latest(name: string): ListenerSpec | undefined {
    return latestOf(this.#present.stagesOf(name));
  }

  /** Yields all configurations, in use or not. */
  *specs(): Generator<ListenerSpec> {
    for (const { spec } of this.byName.values()) yield spec;
    for (const { spec } of this.warming.values()) yield spec;
    yield* this.#present.held.values();
  }

  /**
   * Binds the listeners of the bootstrap. The server's `init` waits for their targets. Throws ListenError, or the error of an
   * unusable filter.
   */
  open(configs: readonly Listener[], init: InitManager): void {
    this.#present.serverInit = init;
    configs.forEach((config, number) => {
      const name = config.name || randomUUID();
      const state = accepted({ version: '' });
      const spec = { name, config, isStatic: true, number, shown: config, state };
      void this.plan({ isStatic: true, set: [spec], removed: [] }).apply();
    });
  }

  /**
   * Checks and binds everything that a change needs, without visible effect. Throws ListenError, or the error of an unusable
   * filter, with nothing changed.
   */
  plan(change: ListenerChange): ListenerPlan {
    try {
      return this.#planOf(change);
    } catch (error) {
      this.#stats.increment(ListenerManagerStats.at.listener_create_failure);
      throw error;
    }
  }

  /**
   * Plans a change of those LDS listeners that take addresses from each other. Undefined when there are none, or when an obstacle
   * will show for each of them alone.
   */
  planAddressSwaps(set: readonly ListenerSpec[]): ListenerPlan | undefined {
    return this.#tryPlan(() => addressSwaps(set, this.#present));
  }

  /**
   * Plans an LDS listener that could not be bound before; undefined when it still cannot be, or when something else is wrong by
   * now.
   */
  planRetry(spec: ListenerSpec): ListenerPlan | undefined {
    return this.#tryPlan(() => [spec]);
  }

  /**
   * Checks listeners of which only inline routes differ from those in use. Returns a function that applies the routes to new
   * requests and leaves connections alone. Throws BatonError when the routes cannot be used.
   */
  planRoutes(specs: readonly ListenerSpec[]): () => void {
    const changes = specs.map((spec) => this.byName.get(spec.name)?.prepareRoutes(spec));
    return () => this.#publish({ inlineRoutes: changes.flatMap((change) => change?.() ?? []) });
  }

  /**
   * Marks listeners for that traffic as stopped, present and later ones. Returns those that were not; their sockets are still
   * open.
   */
  markStopped(reach: DrainReach): PrimaryListener[] {
    const { active, stopped, warming } = this.#present;
    stopped.add(reach);
    for (const [name, { spec }] of [...warming]) if (stopped.includes(spec.config)) this.#steps.drop(name);
    const listeners = [...active.values()].filter(({ config, isStopped }) => !isStopped && stopped.includes(config));
    for (const listener of listeners) {
      listener.stop();
      this.#stats.increment(ListenerManagerStats.at.listener_stopped);
      logger.info(`listener '${shownName(listener.name)}' is stopped`);
    }
    this.#steps.count();
    return listeners;
  }

  /**
   * Called when the workers run: starts listening on all sockets, and accepting. Until then no worker accepts where a parent
   * process does. Throws ListenError when that fails for a listener of the bootstrap.
   */
  startListening(): void {
    this.#steps.startListening();
  }

  /** Called when a child process has taken over, or ended before it did. Stops what was replaced meanwhile. */
  childHasSettled(): void {
    this.#steps.childHasSettled();
  }

  /**
   * Adds sockets that a child process has bound to the address of the offer with this number. They belong to this process now,
   * which accepts on them after that child has ended.
   */
  addSockets(offer: number, fds: readonly number[]): void {
    const [listener] = this.offers.withNumbers(new Set([offer]));
    const sockets = listener?.addSockets(fds);
    if (sockets !== undefined) this.#primary.workers.broadcast({ kind: 'add-sockets', sockets });
    else if (listener === undefined) for (const fd of fds) this.#primary.shim.closeDescriptor(fd);
  }

  /** Called when that child process is dead and none serves. */
  acceptOnAll(): void {
    for (const listener of this.#present.active.values()) {
      if (!listener.hasReceived || listener.isStopped) continue;
      listener.resume();
      this.#rollout.announce(listener);
    }
  }

  /** Called when a child process serves on the sockets with the numbers `taken`. Resolves when nothing is accepted here. */
  replaced(taken: ReadonlySet<number>): Promise<void> {
    return this.#replacement.begin(this.offers.withNumbers(taken));
  }

  /** Called when the child releases the sockets with these numbers. Resolves when the copies here are closed. */
  release(numbers: ReadonlySet<number>): Promise<void> {
    return this.#replacement.release(this.offers.withNumbers(numbers));
  }

  /** Called when the child is dead: this process accepts again. Resolves when it does so on all sockets. */
  reclaim(): Promise<void> {
    const reopened = this.#replacement.end();
    this.draining.reclaim();
    return reopened;
  }

  /** Called when the process ends: no client may be queued where a child process accepts, or would if it were alive. */
  releaseSockets(): void {
    this.#replacement.close();
  }

  /** Yields sockets bound beside those of a parent process, with the parent's numbers of those. */
  *furtherSockets(): Generator<{ readonly id: number; readonly fds: readonly number[] }> {
    for (const { furtherSockets: fds, lineage } of this.#present.active.values()) {
      if (lineage.ofParent !== undefined && fds.length > 0) yield { id: lineage.ofParent.id, fds };
    }
  }

  snapshots(): ListenerSnapshot[] {
    return this.#rollout.snapshots(this.byName.values(), this.warming.values());
  }

  /** `ofParent` returns the parent process's share of a gauge. */
  connectionCount(ofParent: (name: string) => number): number {
    const { scopes, store } = this.#primary;
    const prefixes = new Set<string>();
    for (const { statPrefix } of this.byName.values()) prefixes.add(statPrefix);
    for (const { statPrefix } of this.draining.listeners()) prefixes.add(statPrefix);
    let sum = 0;
    for (const prefix of prefixes) {
      sum += store.valueOf(scopes.ref(prefix, ListenerStats), ListenerStats.at.downstream_cx_active);
      sum -= ofParent(`${prefix}downstream_cx_active`);
    }
    return Math.max(sum, 0);
  }

  /** Closes the primary's copies of all sockets. Nothing more may be called. */
  close(): void {
    this.draining.close();
    for (const listener of [...this.#present.postponed, ...this.#present.versions()]) listener.close();
    this.#present.warming.clear();
  }

  #setHeld(spec: ListenerSpec): void {
    try {
      void this.plan({ isStatic: false, set: [spec], removed: [] }).apply();
    } catch (error) {
      this.onFailure(spec, error, false);
    }
  }

  /** Plans LDS listeners without counting a failure. */
  #tryPlan(choose: () => readonly ListenerSpec[]): ListenerPlan | undefined {
    if (this.#present.isReplaced) return undefined;
    try {
      const set = choose();
      return set.length === 0 ? undefined : this.#planOf({ isStatic: false, set, removed: [] });
    } catch {
      return undefined;
    }
  }

  #planOf(change: ListenerChange): ListenerPlan {
    const prepared = prepare(change, this.#present, this.#context, this.#primary.epoch.parentSockets);
    const { held, removed, restored, updates } = prepared;
    return {
      names: [...removed, ...restored, ...held.map(({ name }) => name), ...updates.map(({ spec }) => spec.name)],
      whenReady: async (ended) => {
        await Promise.all(updates.map(({ init }) => init.whenReady(ended)));
      },
      apply: () => this.#steps.apply(prepared),
      discard: () => {
        for (const update of updates) update.discard();
      },
    };
  }
}
