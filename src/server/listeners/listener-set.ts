// The listeners as the primary keeps them: their sockets are bound here, before any worker accepts on them. A listener that is
// changed serves as it was until its update has everything that it needs.

import { randomUUID } from 'node:crypto';
import { messageOf } from '../../common/errors/errors.js';
import type { Listener } from '../../config/generated/api.js';
import { getLogger } from '../../log/logger.js';
import { ListenerManagerStats, ListenerStats } from '../../stats/layouts/listener.js';
import type { Scope } from '../../stats/thread-stats.js';
import type { ListenerSnapshot } from '../../worker/messages/messages.js';
import { accepted } from '../../xds/dynamic-state.js';
import type { DrainDefaults, DrainReach } from '../draining/drain-manager.js';
import { ListenerDrains } from '../draining/listener-drains.js';
import type { InitManager } from '../init/init-manager.js';
import type { Primary } from '../primary.js';
import type { Publish } from '../workers/snapshots.js';
import { boundAddressOf, isAddressTaken, tradingPlaces } from './changes/addresses.js';
import { FormerListeners } from './changes/former-listeners.js';
import { type ListenerEntry, versionsOf } from './changes/listener-entry.js';
import { ListenerRollout } from './changes/listener-rollout.js';
import type { ListenerUpdate } from './changes/listener-update.js';
import { type ListenerChange, type PreparedChange, type PresentListeners, prepare } from './changes/prepare-change.js';
import { StoppedDirections } from './changes/stopped-directions.js';
import { SocketOffers } from './socket-offers.js';
import type { FilterParts } from './version/filter-parts.js';
import { ListenerBlocks } from './version/listener-blocks.js';
import type { ListenerMakers, ListenerSpec, PrimaryListener } from './version/primary-listener.js';

const logger = getLogger('main');
const configLogger = getLogger('config');

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

interface Entry extends ListenerEntry {
  active: PrimaryListener | undefined;
  warming: ListenerUpdate | undefined;
}

export class ListenerSet {
  /** What updates have left, and still drains. */
  readonly formers: FormerListeners;
  readonly drains: ListenerDrains;
  readonly #primary: Primary;
  readonly #stats: Scope;
  readonly #publish: Publish;
  readonly #makers: ListenerMakers;
  readonly #entries = new Map<string, Entry>();
  readonly #active = new Map<string, PrimaryListener>();
  /** The active ones' sockets, for a child process. */
  readonly offers = new SocketOffers(this.#active);
  readonly #rollout: ListenerRollout;
  /** Left while a child process began: the kernel goes on to give connections to its copies of their sockets. */
  #postponed: PrimaryListener[] = [];
  readonly #stoppedDirections = new StoppedDirections();
  /** Of the server, while that waits for what its listeners need. */
  #serverInit: InitManager | undefined;
  #isRunning = false;
  /** Workers have been told to accept on sockets. */
  onAccept: () => void = () => {};
  /** An update that was good until it was to be used, and why it cannot be. `isStart`: it was when all begin to listen. */
  onFailure: (spec: ListenerSpec, error: unknown, isStart: boolean) => void = () => {};

  constructor(primary: Primary, parts: FilterParts, drainDefaults: DrainDefaults, publish: Publish) {
    this.#primary = primary;
    this.#stats = primary.listenerManagerStats;
    this.#publish = publish;
    const { concurrency, extensions, scopes, shim, words } = primary;
    const isBesideAnother = () => primary.epoch.parentSockets !== undefined || primary.takeOver.isBeginning;
    this.#makers = { blocks: new ListenerBlocks(words), concurrency, extensions, isBesideAnother, parts, scopes, shim };
    this.drains = new ListenerDrains(primary, drainDefaults, this);
    this.#rollout = new ListenerRollout(primary, this.drains.manager, publish);
    this.formers = new FormerListeners(primary.takeOver, this.drains, this.#rollout);
  }

  /** Connections are accepted: until then active listeners only get ready. */
  get isRunning(): boolean {
    return this.#isRunning;
  }

  /** The active ones. */
  get byName(): ReadonlyMap<string, PrimaryListener> {
    return this.#active;
  }

  get entries(): Iterable<ListenerEntry> {
    return this.#entries.values();
  }

  entry(name: string): ListenerEntry | undefined {
    return this.#entries.get(name);
  }

  /** Updates wait for these. */
  *initManagers(): Generator<InitManager> {
    for (const { warming } of this.#entries.values()) if (warming !== undefined) yield warming.init;
  }

  /**
   * Binds the listeners of the bootstrap; `init`, which is that of the server, waits for what they need. Throws ListenError, or
   * what makes a filter unusable.
   */
  open(configs: readonly Listener[], init: InitManager): void {
    this.#serverInit = init;
    configs.forEach((config, number) => {
      const name = config.name || randomUUID();
      const state = accepted({ version: '' });
      const spec = { name, config, isStatic: true, number, shown: config, state };
      void this.plan({ set: [spec], removed: [] }, true).apply();
    });
  }

  /**
   * Checks and binds everything that a change needs; nobody sees anything of it yet. Throws ListenError, or what makes a filter
   * unusable: then nothing has happened. `isStatic`: it is one of the bootstrap, which LDS cannot change; nor this those of LDS.
   */
  plan(change: ListenerChange, isStatic: boolean): ListenerPlan {
    try {
      return this.#planOf(this.#prepare(change, isStatic));
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
    return this.#tryPlan(() => tradingPlaces(set, this.#entries));
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
    const changes = specs.map((spec) => this.#active.get(spec.name)?.prepareRoutes(spec));
    return () => this.#publish({ inlineRoutes: changes.flatMap((change) => change?.() ?? []) });
  }

  /** Marks as stopped what accepts for that traffic, now and later. Returns the listeners that did; their sockets are open. */
  markStopped(reach: DrainReach): PrimaryListener[] {
    this.#stoppedDirections.add(reach);
    for (const entry of [...this.#entries.values()]) {
      if (entry.warming !== undefined && this.#stoppedDirections.includes(entry.warming.spec.config)) {
        this.#drop(entry);
      }
    }
    const isMeant = (each: PrimaryListener) => !each.isStopped && this.#stoppedDirections.includes(each.config);
    const listeners = [...this.#active.values()].filter(isMeant);
    for (const listener of listeners) {
      listener.stop();
      this.#stats.increment(ListenerManagerStats.at.listener_stopped);
      logger.info(`listener '${listener.name}' is stopped`);
    }
    this.#countListeners();
    return listeners;
  }

  /**
   * The workers run: all sockets listen from now on, and the workers are told to accept. Until then none of them accepts where a
   * parent process does. Throws ListenError when that fails for a listener of the bootstrap.
   */
  startListening(): void {
    this.#isRunning = true;
    this.#serverInit = undefined;
    for (const entry of [...this.#entries.values()]) {
      try {
        if (entry.active !== undefined) this.#rollout.accept(entry.active);
      } catch (error) {
        if (entry.isStatic) throw error;
        const { active } = entry;
        this.#remove(entry);
        this.#failed(active!.spec, error, true);
      }
    }
  }

  /** A child process has taken over, or is gone before it did: what was left meanwhile stops to accept. */
  childHasSettled(): void {
    const postponed = this.#postponed;
    this.#postponed = [];
    for (const listener of postponed) this.#leave(listener);
  }

  snapshots(): ListenerSnapshot[] {
    return [...this.#entries.values()].flatMap(({ active, warming }) => [...this.#rollout.snapshots(active, warming)]);
  }

  /** `ofParent` tells what a gauge of that name has of a parent process. */
  connectionCount(ofParent: (name: string) => number): number {
    const { scopes, store } = this.#primary;
    const prefixes = new Set<string>();
    for (const { statPrefix } of this.#active.values()) prefixes.add(statPrefix);
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
    for (const listener of this.#postponed) listener.close();
    for (const entry of this.#entries.values()) {
      entry.active?.close();
      entry.warming?.newVersion?.close();
      entry.warming = undefined;
    }
  }

  /** plan() of listeners of LDS, of which a failure does not count. */
  #tryPlan(choose: () => readonly ListenerSpec[]): ListenerPlan | undefined {
    try {
      const set = choose();
      return set.length === 0 ? undefined : this.#planOf(this.#prepare({ set, removed: [] }, false));
    } catch {
      return undefined;
    }
  }

  #planOf(prepared: PreparedChange): ListenerPlan {
    const { leaving, removed, restored, updates } = prepared;
    return {
      names: [...removed, ...restored, ...updates.map(({ spec }) => spec.name)],
      whenReady: async (ended) => {
        await Promise.all(updates.map(({ init }) => init.whenReady(ended)));
      },
      apply: () => {
        for (const name of removed) this.#remove(this.#entries.get(name)!);
        for (const name of restored) {
          this.#stats.increment(ListenerManagerStats.at.listener_modified);
          this.#drop(this.#entries.get(name)!);
        }
        // Nobody goes from an address before all that come to others can.
        const ready = this.#isRunning && leaving.size > 0 ? whenAllReady(updates) : undefined;
        for (const update of updates) this.#begin(update, prepared, ready);
        this.#countListeners();
        return Promise.all(updates.map(({ outcome }) => outcome)).then((failures) => failures.filter(Boolean));
      },
      discard: () => {
        for (const update of updates) update.discard();
      },
    };
  }

  /** `ready`: when it may be rolled out; undefined: when it has what it needs. */
  #begin(update: ListenerUpdate, change: PreparedChange, ready: Promise<void> | undefined): void {
    const { name } = update.spec;
    const { at } = ListenerManagerStats;
    let entry = this.#entries.get(name);
    const why = this.#whyNotAnyMore(update, entry, change);
    if (why !== undefined) {
      update.discard();
      update.settle(new Error(why));
      return;
    }
    this.#stats.increment(entry === undefined ? at.listener_added : at.listener_modified);
    if (entry === undefined) {
      entry = { name, isStatic: change.isStatic, active: undefined, warming: undefined };
      this.#entries.set(name, entry);
    }
    const { warming } = entry;
    entry.warming = update;
    if (warming !== undefined) this.#cancel(warming, new Error('a later change has taken its place'));
    const known = entry;
    // Before that the server itself waits, and nobody is served.
    if (!this.#isRunning) this.#use(known, update);
    else if (ready !== undefined) void ready.then(() => this.#rollOut(known, update));
    else update.init.wait(() => void this.#rollOut(known, update));
  }

  /** A reload may have waited for something since it was checked. */
  #whyNotAnyMore(
    { newVersion, spec: { config, name } }: ListenerUpdate,
    entry: Entry | undefined,
    { isStatic, leaving }: PreparedChange,
  ): string | undefined {
    // Before that nothing waits.
    if (!this.#isRunning) return undefined;
    if (this.#stoppedDirections.includes(config)) {
      return `listeners of the traffic direction of '${name}' have been stopped`;
    }
    if (entry !== undefined && entry.isStatic !== isStatic) return `a dynamic listener has the name '${name}' by now`;
    const others = [...this.#entries.values()].filter((other) => other !== entry);
    const versions = others.flatMap(versionsOf).filter((version) => !leaving.has(version));
    if (newVersion !== undefined && isAddressTaken(boundAddressOf(config), versions))
      return `another listener has the address of '${name}' by now`;
    return undefined;
  }

  /** It has everything that it needs: it is used when all workers have built it. Until then the version before serves. */
  async #rollOut(entry: Entry, update: ListenerUpdate): Promise<void> {
    if (entry.warming !== update) return;
    try {
      await this.#rollout.build(update);
      if (entry.warming === update) this.#use(entry, update);
    } catch (error) {
      if (entry.warming !== update) return;
      this.#drop(entry, error);
      this.#failed(update.spec, error, false);
    }
    this.#countListeners();
  }

  /** Throws ListenError; it is not used then. */
  #use(entry: Entry, update: ListenerUpdate): void {
    if (update.chains !== undefined) this.#useChains(update.listener, update.spec, update.chains);
    else this.#useVersion(entry, update.listener);
    entry.warming = undefined;
    update.settle();
  }

  #useChains(listener: PrimaryListener, spec: ListenerSpec, chains: ListenerUpdate['chains'] & object): void {
    const left = listener.replaceChains(spec, chains);
    this.#stats.increment(ListenerManagerStats.at.listener_in_place_updated);
    this.#countCreated();
    this.formers.addChains(listener, left);
  }

  #useVersion(entry: Entry, listener: PrimaryListener): void {
    if (this.#isRunning) this.#rollout.accept(listener);
    const { active } = entry;
    entry.active = listener;
    this.#active.set(entry.name, listener);
    if (this.#isRunning) this.onAccept();
    if (active !== undefined) this.#leave(active);
    this.#countCreated();
    if (!this.#isRunning) {
      this.#rollout.publish(listener);
      // It was told to stop before it began.
      if (this.#stoppedDirections.includes(listener.config)) listener.close();
    }
  }

  /** On each worker, as it is counted in Envoy; failures count once. */
  #countCreated(): void {
    this.#stats.add(ListenerManagerStats.at.listener_create_success, this.#primary.concurrency);
  }

  /** Its update is dropped, because of `why`, and it serves on as it is; without an active version it is gone. */
  #drop(entry: Entry, why: unknown = new Error('the listener is to stay as it is')): void {
    const { warming } = entry;
    entry.warming = undefined;
    if (entry.active === undefined) this.#entries.delete(entry.name);
    if (warming !== undefined) this.#cancel(warming, why);
  }

  /** An update that is not in use yet never will be, because of `why`. */
  #cancel(update: ListenerUpdate, why: unknown): void {
    const { isPublished, listener, newChains, newVersion } = update;
    if (!isPublished) update.discard();
    else if (newVersion !== undefined) this.#rollout.forget([newVersion]);
    else {
      // Workers that could build the new chains may have given connections to them.
      this.#rollout.publish(listener);
      this.formers.addChains(listener, newChains);
    }
    update.settle(why);
  }

  #prepare(change: ListenerChange, isStatic: boolean): PreparedChange {
    const now: PresentListeners = {
      entries: this.#entries,
      formers: this.formers,
      postponed: this.#postponed,
      stopped: this.#stoppedDirections,
      isRunning: this.#isRunning,
      serverInit: this.#serverInit,
      parent: this.#primary.epoch.parentSockets,
    };
    return prepare(change, isStatic, now, this.#makers);
  }

  #remove(entry: Entry): void {
    const { active, name, warming } = entry;
    this.#entries.delete(name);
    entry.warming = undefined;
    if (warming !== undefined) this.#cancel(warming, new Error('the listener was removed'));
    this.#stats.increment(ListenerManagerStats.at.listener_removed);
    if (active === undefined) return;
    this.#active.delete(name);
    this.#leave(active);
  }

  /** A version is not used any more. */
  #leave(listener: PrimaryListener): void {
    if (!this.#isRunning) return this.#rollout.forget([listener]);
    if (this.#primary.takeOver.isBeginning) return void this.#postponed.push(listener);
    const { lineage } = listener;
    const goesOn = [...this.#entries.values()].some(
      ({ active, warming }) => active?.lineage === lineage || warming?.listener.lineage === lineage,
    );
    // Another version that uses its sockets gets what waits there.
    this.formers.addListener(listener, !goesOn);
  }

  #failed(spec: ListenerSpec, error: unknown, isStart: boolean): void {
    this.#stats.increment(ListenerManagerStats.at.listener_create_failure);
    configLogger.warning(`listener '${spec.name}' cannot be used: ${messageOf(error)}`);
    this.onFailure(spec, error, isStart);
  }

  #countListeners(): void {
    const { at } = ListenerManagerStats;
    let warming = 0;
    for (const entry of this.#entries.values()) if (entry.warming !== undefined) warming++;
    this.#stats.set(at.total_listeners_active, this.#active.size);
    this.#stats.set(at.total_listeners_warming, warming);
  }
}

/** Resolves when each of them has what it needs, or is not going to be used. */
async function whenAllReady(updates: readonly ListenerUpdate[]): Promise<void> {
  const ready = (init: InitManager) => new Promise<void>((resolve) => init.wait(resolve));
  await Promise.all(updates.map(({ init, outcome }) => Promise.race([ready(init), outcome])));
}
