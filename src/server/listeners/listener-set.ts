// The listeners as the primary keeps them: their sockets are bound here, before any worker accepts on them. What the server, LDS
// and reloads may do with them, and see of them.

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
import { boundAddressOf, isAtOneOf, tradingPlaces } from './changes/addresses.js';
import { FormerListeners } from './changes/former-listeners.js';
import { ListenerRollout } from './changes/listener-rollout.js';
import type { ListenerUpdate } from './changes/listener-update.js';
import { type ListenerChange, prepare } from './changes/prepare-change.js';
import { latestOf, PresentListeners, versionsOf } from './changes/present-listeners.js';
import { Replacement } from './changes/replacement.js';
import { type ListenerEvents, UpdateSteps } from './changes/update-steps.js';
import { SocketOffers } from './socket-offers.js';
import type { FilterParts } from './version/filter-parts.js';
import { ListenerBlocks } from './version/listener-blocks.js';
import type { ListenerMakers, ListenerSpec, PrimaryListener } from './version/primary-listener.js';

const logger = getLogger('main');

/** A change that is possible: all that could fail has been done. One of the two is called, once. */
export interface ListenerPlan {
  /** Names of listeners that apply() changes in any way. */
  readonly names: readonly string[];
  /** Resolves when nothing that it changes waits for anything, or when `ended` says that nobody waits any more. */
  whenReady(ended: AbortSignal): Promise<void>;
  /** Resolves when all that it changes is in use, or is not going to be: with why not. */
  apply(): Promise<unknown[]>;
  discard(): void;
}

export class ListenerSet implements ListenerEvents {
  readonly drains: ListenerDrains;
  /** The active ones' sockets, for a child process. */
  readonly offers: SocketOffers;
  onAccept: ListenerEvents['onAccept'] = () => {};
  onFailure: ListenerEvents['onFailure'] = () => {};
  readonly #primary: Primary;
  readonly #stats: Scope;
  readonly #publish: Publish;
  readonly #makers: ListenerMakers;
  readonly #present: PresentListeners;
  readonly #rollout: ListenerRollout;
  readonly #steps: UpdateSteps;
  readonly #replacement: Replacement;

  constructor(primary: Primary, parts: FilterParts, drainDefaults: DrainDefaults, publish: Publish) {
    this.#primary = primary;
    this.#stats = primary.listenerManagerStats;
    this.#publish = publish;
    const { concurrency, extensions, scopes, shim, words } = primary;
    const isBesideAnother = () => primary.epoch.parentSockets !== undefined || primary.takeOver.isBeginning;
    this.#makers = { blocks: new ListenerBlocks(words), concurrency, extensions, isBesideAnother, parts, scopes, shim };
    this.drains = new ListenerDrains(primary, drainDefaults, this);
    this.#rollout = new ListenerRollout(primary, this.drains.manager, publish);
    this.#present = new PresentListeners(new FormerListeners(primary.takeOver, this.drains, this.#rollout));
    this.#steps = new UpdateSteps(primary, this.#present, this.#rollout, this);
    this.offers = new SocketOffers(this.#present.active);
    this.#replacement = new Replacement(primary, this.#present, this.#rollout, this.drains, {
      drop: (name) => this.#steps.drop(name),
      set: (spec) => this.#setHeld(spec),
      count: () => this.#steps.count(),
      onAccept: () => this.onAccept(),
    });
  }

  /** Connections are accepted: until then active listeners only get ready. */
  get isRunning(): boolean {
    return this.#present.isRunning;
  }

  /** The active ones. */
  get byName(): ReadonlyMap<string, PrimaryListener> {
    return this.#present.active;
  }

  /** What is not in use yet, by name. */
  get warming(): ReadonlyMap<string, ListenerUpdate> {
    return this.#present.warming;
  }

  /** What updates have left, and still drains. */
  get formers(): FormerListeners {
    return this.#present.formers;
  }

  /** Those of these names that have addresses which some of `set` are to have. */
  whoseAddressesAreWanted(names: Iterable<string>, set: readonly Listener[]): Set<string> {
    const wanted = new Set(set.map(boundAddressOf));
    const present = (name: string) => versionsOf(this.#present.stagesOf(name));
    return new Set([...names].filter((name) => present(name).some((version) => isAtOneOf(version, wanted))));
  }

  /** How the listener of that name is configured by now, be that in use or not; undefined: there is none. */
  latest(name: string): ListenerSpec | undefined {
    return latestOf(this.#present.stagesOf(name));
  }

  /** Of all that there is, be it in use or not. */
  *specs(): Generator<ListenerSpec> {
    for (const { spec } of this.byName.values()) yield spec;
    for (const { spec } of this.warming.values()) yield spec;
    yield* this.#present.held.values();
  }

  /**
   * Binds the listeners of the bootstrap; `init`, which is that of the server, waits for what they need. Throws ListenError, or
   * what makes a filter unusable.
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
   * Checks and binds everything that a change needs; nobody sees anything of it yet. Throws ListenError, or what makes a filter
   * unusable: then nothing has happened.
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
   * What takes those listeners of LDS to their addresses that get them from each other; undefined: there are none, or what stands
   * against it is to be seen at each by itself.
   */
  planTrades(set: readonly ListenerSpec[]): ListenerPlan | undefined {
    return this.#tryPlan(() => tradingPlaces(set, this.#present));
  }

  /** What takes up a listener of LDS that could not be had; undefined: it still cannot, or something else stands against it by now. */
  planAgain(spec: ListenerSpec): ListenerPlan | undefined {
    return this.#tryPlan(() => [spec]);
  }

  /**
   * Checks listeners of which nothing but inline routes is other than in use. What it returns makes new requests see those, and
   * leaves connections alone. Throws BatonError when routes cannot be used.
   */
  planRoutes(specs: readonly ListenerSpec[]): () => void {
    const changes = specs.map((spec) => this.byName.get(spec.name)?.prepareRoutes(spec));
    return () => this.#publish({ inlineRoutes: changes.flatMap((change) => change?.() ?? []) });
  }

  /** Marks as stopped what accepts for that traffic, now and later. Returns the listeners that did; their sockets are open. */
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
   * The workers run: all sockets listen from now on, and the workers are told to accept. Until then none of them accepts where a
   * parent process does. Throws ListenError when that fails for a listener of the bootstrap.
   */
  startListening(): void {
    this.#steps.startListening();
  }

  /** A child process has taken over, or is gone before it did: what was left meanwhile stops to accept. */
  childHasSettled(): void {
    this.#steps.childHasSettled();
  }

  /**
   * Sockets that a child process has bound to the address of the offer with this number, and shares: they are this process's now,
   * which accepts on them when that one is gone.
   */
  addSockets(offer: number, fds: readonly number[]): void {
    const [listener] = this.offers.withNumbers(new Set([offer]));
    const sockets = listener?.addSockets(fds);
    if (sockets !== undefined) this.#primary.workers.broadcast({ kind: 'add-sockets', sockets });
    else if (listener === undefined) for (const fd of fds) this.#primary.shim.closeDescriptor(fd);
  }

  /** That child process is dead, and none serves. */
  acceptOnAll(): void {
    for (const listener of this.#present.active.values()) {
      if (!listener.hasReceived || listener.isStopped) continue;
      listener.resume();
      this.#rollout.announce(listener);
    }
  }

  /** A child process serves, at the sockets with the numbers `taken`. Resolves when nothing is accepted here. */
  replaced(taken: ReadonlySet<number>): Promise<void> {
    return this.#replacement.begin(this.offers.withNumbers(taken));
  }

  /** It gives up those with these numbers. Resolves when no copies are open here. */
  release(numbers: ReadonlySet<number>): Promise<void> {
    return this.#replacement.release(this.offers.withNumbers(numbers));
  }

  /** It is dead: this process accepts again. Resolves when it does on all sockets. */
  takeBack(): Promise<void> {
    const reopened = this.#replacement.end();
    this.formers.takeBack();
    return reopened;
  }

  /** The process ends: nobody is to wait where a child process accepts, or would if it were alive. */
  leaveSockets(): void {
    this.#replacement.close();
  }

  /** Sockets that were bound beside those of a parent process, by its numbers of those. */
  *furtherSockets(): Generator<{ readonly id: number; readonly fds: readonly number[] }> {
    for (const { furtherSockets: fds, lineage } of this.#present.active.values()) {
      if (lineage.ofParent !== undefined && fds.length > 0) yield { id: lineage.ofParent.id, fds };
    }
  }

  snapshots(): ListenerSnapshot[] {
    return this.#rollout.snapshots(this.byName.values(), this.warming.values());
  }

  /** `ofParent` tells what a gauge of that name has of a parent process. */
  connectionCount(ofParent: (name: string) => number): number {
    const { scopes, store } = this.#primary;
    const prefixes = new Set<string>();
    for (const { statPrefix } of this.byName.values()) prefixes.add(statPrefix);
    for (const { statPrefix } of this.formers.listeners()) prefixes.add(statPrefix);
    let sum = 0;
    for (const prefix of prefixes) {
      sum += store.valueOf(scopes.ref(prefix, ListenerStats), ListenerStats.at.downstream_cx_active);
      sum -= ofParent(`${prefix}downstream_cx_active`);
    }
    return Math.max(sum, 0);
  }

  /** Nothing more happens; the primary's copies of all sockets are closed. */
  close(): void {
    this.formers.close();
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

  /** plan() of listeners of LDS, of which a failure does not count. */
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
    const prepared = prepare(change, this.#present, this.#makers, this.#primary.epoch.parentSockets);
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
