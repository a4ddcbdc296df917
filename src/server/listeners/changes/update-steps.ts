// The way of an update from planned to in use: it waits for what it needs, workers build it, and it takes the place of the version
// before, which leaves. Until then that serves, and a failure leaves no trace.

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

/** What others are told of. */
export interface ListenerEvents {
  /** Workers have been told to accept on sockets. */
  onAccept: () => void;
  /** An update that was good until it was to be used, and why it cannot be. `isStart`: it was when all begin to listen. */
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

  /** Resolves when all of a change is in use, or is not going to be: with why not. */
  apply({ held, leaving, removed, restored, updates }: PreparedChange): Promise<unknown[]> {
    for (const name of removed) this.#remove(name);
    for (const spec of held) this.#present.held.set(spec.name, spec);
    for (const name of restored) {
      this.#stats.increment(at.listener_modified);
      this.drop(name);
    }
    // Nobody goes from an address before all that come to others can.
    const ready = this.#present.isRunning && leaving.size > 0 ? whenAllReady(updates) : undefined;
    for (const update of updates) this.#begin(update, leaving, ready);
    this.count();
    return Promise.all(updates.map(({ outcome }) => outcome)).then((failures) => failures.filter(Boolean));
  }

  /** What is active is used from now on, and what comes later goes through all steps. Throws ListenError for one of the bootstrap. */
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

  /** The update of that name, if there is one, never will be in use, because of `why`; the active version serves on as it is. */
  drop(name: string, why: unknown = new Error('the listener is to stay as it is')): void {
    const update = this.#present.warming.get(name);
    this.#present.warming.delete(name);
    if (update !== undefined) this.#cancel(update, why);
  }

  /** A child process has taken over, or is gone before it did: what was left meanwhile stops to accept. */
  childHasSettled(): void {
    for (const listener of this.#present.postponed.splice(0)) this.#leave(listener);
  }

  /** Sets the gauges of listeners that are active and warming. */
  count(): void {
    this.#stats.set(at.total_listeners_active, this.#present.active.size);
    this.#stats.set(at.total_listeners_warming, this.#present.warming.size);
  }

  /** `ready`: when it may be rolled out; undefined: when it has what it needs. */
  #begin(update: ListenerUpdate, leaving: PreparedChange['leaving'], ready: Promise<void> | undefined): void {
    const { isRunning, warming } = this.#present;
    const { name } = update.spec;
    const latest = latestOf(this.#present.stagesOf(name));
    // Before that nothing waits.
    const why = isRunning ? this.#whyNotAnyMore(update, latest, leaving) : undefined;
    if (why !== undefined) {
      update.discard();
      update.settle(new Error(why));
      return;
    }
    this.#stats.increment(latest === undefined ? at.listener_added : at.listener_modified);
    const earlier = warming.get(name);
    warming.set(name, update);
    if (earlier !== undefined) this.#cancel(earlier, new Error('a later change has taken its place'));
    // Before that the server itself waits, and nobody is served.
    if (!isRunning) this.#use(update);
    else if (ready !== undefined) void ready.then(() => this.#rollOut(update));
    else update.init.wait(() => void this.#rollOut(update));
  }

  /** A reload may have waited for something since it was checked. */
  #whyNotAnyMore(
    { newVersion, spec: { config, isStatic, name } }: ListenerUpdate,
    latest: ListenerSpec | undefined,
    leaving: PreparedChange['leaving'],
  ): string | undefined {
    if (this.#present.isReplaced) return 'another process has taken over from this one';
    if (this.#present.stopped.includes(config)) {
      return `listeners of the traffic direction of '${name}' have been stopped`;
    }
    if (latest !== undefined && latest.isStatic !== isStatic) return `a dynamic listener has the name '${name}' by now`;
    if (newVersion !== undefined && isAddressTaken(boundAddressOf(config), this.#others(name, leaving)))
      return `another listener has the address of '${name}' by now`;
    return undefined;
  }

  /** It has everything that it needs: it is used when all workers have built it. Until then the version before serves. */
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

  /** No later change has dropped it. */
  #isWarming(update: ListenerUpdate): boolean {
    return this.#present.warming.get(update.spec.name) === update;
  }

  /** Throws ListenError; it is not used then. */
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
    this.#present.formers.addChains(listener, left);
  }

  #useVersion(listener: PrimaryListener): void {
    const { active, isRunning, stopped } = this.#present;
    if (isRunning) this.#rollout.accept(listener);
    const before = active.get(listener.name);
    active.set(listener.name, listener);
    if (isRunning) this.#events.onAccept();
    if (before !== undefined) this.#leave(before);
    this.#countCreated();
    if (!isRunning) {
      this.#rollout.publish(listener);
      // It was told to stop before it began.
      if (stopped.includes(listener.config)) listener.close();
    }
  }

  /** On each worker, as it is counted in Envoy; failures count once. */
  #countCreated(): void {
    this.#stats.add(at.listener_create_success, this.#primary.concurrency);
  }

  /** An update that is not in use yet never will be, because of `why`. */
  #cancel(update: ListenerUpdate, why: unknown): void {
    const { isPublished, listener, newChains, newVersion } = update;
    if (!isPublished) update.discard();
    else if (newVersion !== undefined) this.#rollout.forget([newVersion]);
    else {
      // Workers that could build the new chains may have given connections to them.
      this.#rollout.publish(listener);
      this.#present.formers.addChains(listener, newChains);
    }
    update.settle(why);
  }

  #remove(name: string): void {
    const listener = this.#present.active.get(name);
    this.#present.active.delete(name);
    this.#present.held.delete(name);
    this.drop(name, new Error('the listener was removed'));
    this.#stats.increment(at.listener_removed);
    if (listener !== undefined) this.#leave(listener);
  }

  /** A version is not used any more. */
  #leave(listener: PrimaryListener): void {
    const { formers, isRunning, postponed } = this.#present;
    if (!isRunning) return this.#rollout.forget([listener]);
    if (this.#primary.takeOver.isBeginning) return void postponed.push(listener);
    // Another version that uses its sockets gets what waits there.
    formers.addListener(listener, this.#goesOn(listener));
  }

  #goesOn(listener: PrimaryListener): boolean {
    for (const { lineage } of this.#present.versions()) if (lineage === listener.lineage) return true;
    return false;
  }

  /** Versions that have addresses which the listener of this name cannot have. */
  *#others(name: string, leaving: PreparedChange['leaving']): Generator<PrimaryListener> {
    for (const each of this.#present.versions()) if (each.name !== name && !leaving.has(each)) yield each;
  }

  #failed(spec: ListenerSpec, error: unknown, isStart: boolean): void {
    this.#stats.increment(at.listener_create_failure);
    logger.warning(`listener '${shownName(spec.name)}' cannot be used: ${messageOf(error)}`);
    this.#events.onFailure(spec, error, isStart);
  }
}

/** Resolves when each of them has what it needs, or is not going to be used. */
async function whenAllReady(updates: readonly ListenerUpdate[]): Promise<void> {
  const ready = (init: InitManager) => new Promise<void>((resolve) => init.wait(resolve));
  await Promise.all(updates.map(({ init, outcome }) => Promise.race([ready(init), outcome])));
}
