// Takes an update from planned to in use: it waits for its init targets, workers build it, and it replaces the previous version,
// which drains. Until then the previous version serves, and a failure leaves no trace.

import { messageOf } from '../../../common/errors/errors.js';
import { shownName } from '../../../common/text/shown.js';
import { getLogger } from '../../../log/logger.js';
import { ListenerManagerStats } from '../../../stats/layouts/listener.js';
import type { Scope } from '../../../stats/thread-stats.js';
import type { InitManager } from '../../init/init-manager.js';
import type { Primary } from '../../primary.js';
import type { PrimaryChain } from '../version/primary-chain.js';
import type { ListenerSpec, PrimaryListener } from '../version/primary-listener.js';
import { boundAddressOf, isAddressTaken } from './addresses.js';
import type { ListenerRollout } from './listener-rollout.js';
import type { ListenerUpdate } from './listener-update.js';
import type { PreparedChange } from './prepare-change.js';
import { latestOf, type PresentListeners } from './present-listeners.js';

/** The events of listener updates. */
export interface ListenerEvents {
  /** Called when workers start to accept on sockets. */
  onAccept: () => void;
  /** Called when an accepted update fails before it is in use. `isStart`: when all listeners started to listen. */
  onFailure: (spec: ListenerSpec, error: unknown, isStart: boolean) => void;
}

const { at } = ListenerManagerStats;
const logger = getLogger('config');

export class UpdateSteps {
  readonly #primary: Primary;
  readonly #stats: Scope;
  readonly #present: PresentListeners;
  readonly #rollout: ListenerRollout;
  readonly #events: ListenerEvents;

  constructor(primary: Primary, present: PresentListeners, rollout: ListenerRollout, events: ListenerEvents) {
    this.#primary = primary;
    this.#stats = primary.listenerManagerStats;
    this.#present = present;
    this.#rollout = rollout;
    this.#events = events;
  }

  /** Resolves when all parts of a change are in use or have failed, with the errors. */
  apply({ held, moving, removed, restored, updates }: PreparedChange): Promise<unknown[]> {
    for (const name of removed) this.#remove(name);
    for (const spec of held) this.#present.held.set(spec.name, spec);
    for (const name of restored) {
      this.#stats.increment(at.listener_modified);
      this.drop(name);
    }
    // Old listeners release their addresses only after all new ones are ready.
    const ready = this.#present.isRunning && moving.size > 0 ? whenAllReady(updates) : undefined;
    for (const update of updates) this.#begin(update, moving, ready);
    this.count();
    return Promise.all(updates.map(({ outcome }) => outcome)).then((failures) => failures.filter(Boolean));
  }

  /** Puts the active listeners into use; later ones go through all steps. Throws ListenError for a listener of the bootstrap. */
  startListening(): void {
    this.#present.isRunning = true;
    this.#present.serverInit = undefined;
    for (const listener of [...this.#present.active.values()]) {
      try {
        this.#rollout.accept(listener);
      } catch (error) {
        if (listener.spec.isStatic) throw error;
        this.#remove(listener.name);
        this.#failed(listener.spec, error, true);
      }
    }
    this.count();
  }

  /** Drops the update with that name, if there is one, because of `why`. The active version continues to serve. */
  drop(name: string, why: unknown = new Error('the listener keeps its active configuration')): void {
    const update = this.#present.warming.get(name);
    this.#present.warming.delete(name);
    if (update !== undefined) this.#cancel(update, why);
  }

  /** Called when a child process has taken over, or ended before it did. Stops what was replaced meanwhile. */
  childHasSettled(): void {
    for (const listener of this.#present.postponed.splice(0)) this.#retire(listener);
  }

  /** Sets the gauges of listeners that are active and warming. */
  count(): void {
    this.#stats.set(at.total_listeners_active, this.#present.active.size);
    this.#stats.set(at.total_listeners_warming, this.#present.warming.size);
  }

  /** `ready`: resolves when the update may be rolled out; undefined when only its own init targets count. */
  #begin(update: ListenerUpdate, moving: PreparedChange['moving'], ready: Promise<void> | undefined): void {
    const { isRunning, warming } = this.#present;
    const { name } = update.spec;
    const latest = latestOf(this.#present.stagesOf(name));
    // Before the server runs, nothing has waited.
    const why = isRunning ? this.#obstacleTo(update, latest, moving) : undefined;
    if (why !== undefined) {
      update.discard();
      update.settle(new Error(why));
      return;
    }
    this.#stats.increment(latest === undefined ? at.listener_added : at.listener_modified);
    const earlier = warming.get(name);
    warming.set(name, update);
    if (earlier !== undefined) this.#cancel(earlier, new Error('a later change has replaced it'));
    // Before it runs, the server itself waits, and there are no clients.
    if (!isRunning) this.#use(update);
    else if (ready !== undefined) void ready.then(() => this.#rollOut(update));
    else update.init.wait(() => void this.#rollOut(update));
  }

  /** Returns why the update is no longer possible: a reload may have waited since it was checked. */
  #obstacleTo(
    { newVersion, spec: { config, isStatic, name } }: ListenerUpdate,
    latest: ListenerSpec | undefined,
    moving: PreparedChange['moving'],
  ): string | undefined {
    if (this.#present.isReplaced) return 'another process has taken over from this one';
    if (this.#present.stopped.includes(config)) {
      return `listeners of the traffic direction of '${name}' have been stopped`;
    }
    if (latest !== undefined && latest.isStatic !== isStatic) return `a dynamic listener now has the name '${name}'`;
    if (newVersion !== undefined && isAddressTaken(boundAddressOf(config), this.#othersThan(name, moving)))
      return `another listener now has the address of '${name}'`;
    return undefined;
  }

  /**
   * Called when the init targets are ready. The update is used when all workers have built it; its predecessor serves until then.
   */
  async #rollOut(update: ListenerUpdate): Promise<void> {
    if (!this.#isWarming(update)) return;
    try {
      await this.#rollout.build(update);
      if (this.#isWarming(update)) this.#use(update);
    } catch (error) {
      if (!this.#isWarming(update)) return;
      this.drop(update.spec.name, error);
      this.#failed(update.spec, error, false);
    }
    this.count();
  }

  /** No later change has dropped the update. */
  #isWarming(update: ListenerUpdate): boolean {
    return this.#present.warming.get(update.spec.name) === update;
  }

  /** Puts the update into use. Throws ListenError, and leaves it unused. */
  #use(update: ListenerUpdate): void {
    const { chains, listener, spec } = update;
    if (chains === undefined) this.#useVersion(listener);
    else this.#useChains(listener, spec, chains);
    this.#present.warming.delete(spec.name);
    update.settle();
  }

  #useChains(listener: PrimaryListener, spec: ListenerSpec, chains: readonly PrimaryChain[]): void {
    const left = listener.replaceChains(spec, chains);
    this.#stats.increment(at.listener_in_place_updated);
    this.#countCreated();
    this.#present.draining.addChains(listener, left);
  }

  #useVersion(listener: PrimaryListener): void {
    const { active, isRunning, stopped } = this.#present;
    if (isRunning) this.#rollout.accept(listener);
    const before = active.get(listener.name);
    active.set(listener.name, listener);
    if (isRunning) this.#events.onAccept();
    if (before !== undefined) this.#retire(before);
    this.#countCreated();
    if (!isRunning) {
      this.#rollout.publish(listener);
      // Its direction was stopped before it started.
      if (stopped.includes(listener.config)) listener.close();
    }
  }

  /** Counts a creation for each worker, as Envoy does; failures count once. */
  #countCreated(): void {
    this.#stats.add(at.listener_create_success, this.#primary.concurrency);
  }

  /** Discards an update that is not in use, because of `why`. */
  #cancel(update: ListenerUpdate, why: unknown): void {
    const { isPublished, listener, newChains, newVersion } = update;
    if (!isPublished) update.discard();
    else if (newVersion !== undefined) this.#rollout.remove([newVersion]);
    else {
      // Workers that have built the new chains may have given them connections.
      this.#rollout.publish(listener);
      this.#present.draining.addChains(listener, newChains);
    }
    update.settle(why);
  }

  #remove(name: string): void {
    const listener = this.#present.active.get(name);
    this.#present.active.delete(name);
    this.#present.held.delete(name);
    this.drop(name, new Error('the listener was removed'));
    this.#stats.increment(at.listener_removed);
    if (listener !== undefined) this.#retire(listener);
  }

  /** Called when a version is no longer used. */
  #retire(listener: PrimaryListener): void {
    const { draining, isRunning, postponed } = this.#present;
    if (!isRunning) return this.#rollout.remove([listener]);
    if (this.#primary.takeOver.isBeginning) return void postponed.push(listener);
    // Another version with the same sockets accepts their backlog.
    draining.addListener(listener, this.#hasSuccessor(listener));
  }

  #hasSuccessor(listener: PrimaryListener): boolean {
    for (const { lineage } of this.#present.versions()) if (lineage === listener.lineage) return true;
    return false;
  }

  /** Yields versions whose addresses the listener with this name cannot use. */
  *#othersThan(name: string, moving: PreparedChange['moving']): Generator<PrimaryListener> {
    for (const each of this.#present.versions()) if (each.name !== name && !moving.has(each)) yield each;
  }

  #failed(spec: ListenerSpec, error: unknown, isStart: boolean): void {
    this.#stats.increment(at.listener_create_failure);
    logger.warning(`listener '${shownName(spec.name)}' cannot be used: ${messageOf(error)}`);
    this.#events.onFailure(spec, error, isStart);
  }
}

/** Resolves when each update is ready or has failed. */
async function whenAllReady(updates: readonly ListenerUpdate[]): Promise<void> {
  const ready = (init: InitManager) => new Promise<void>((resolve) => init.wait(resolve));
  await Promise.all(updates.map(({ init, outcome }) => Promise.race([ready(init), outcome])));
}
