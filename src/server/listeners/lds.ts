// The listener discovery service: adds, changes and removes listeners from files and management servers.

import { shownName } from '../../common/text/shown.js';
import { isFileSource } from '../../config/fields/file-of-source.js';
import type { ConfigSource, Listener } from '../../config/generated/api.js';
import { messageWithoutSecrets } from '../../config/text/secrets.js';
import { getLogger } from '../../log/logger.js';
import { accepted, type DynamicState, REQUESTED, refused, rejected, shown } from '../../xds/dynamic-state.js';
import { type Resource, removedNames, type Update } from '../../xds/resource.js';
import type { ConfigSources, Rejection, StepwiseUpdate, Watcher } from '../../xds/subscription.js';
import type { InitManager, InitTarget } from '../init/init-manager.js';
import type { ListenerPlan, ListenerSet } from './listener-set.js';
import { ADDRESS_IN_USE, refusalText, shortageIn, UnboundListeners } from './unbound-listeners.js';
import type { ListenerSpec } from './version/primary-listener.js';

const logger = getLogger('upstream');

/** Listeners added or removed without yielding: some milliseconds of work. */
const LISTENERS_PER_STEP = 16;
/** Cost of an unchanged listener, relative to a changed one. */
const UNCHANGED_WORK = 1 / 16;
/** Cost of a refused resource, relative to a changed listener. */
const REFUSED_WORK = 1 / 256;

export class ListenerDiscovery implements Watcher<Listener> {
  readonly #source: ConfigSource;
  readonly #sources: ConfigSources;
  readonly #listeners: ListenerSet;
  /**
   * States of resources that cannot be used, by name ('' when it is unreadable), as of the last update; and of those that wait
   * for their addresses.
   */
  readonly #failures = new Map<string, DynamicState>();
  /** Resources whose names belong to static listeners. */
  readonly #shadowed = new Map<string, Resource<Listener>>();
  readonly #unbound = new UnboundListeners((spec) => this.#planRetry(spec));
  /** Version of the last update that changed a listener; '' before the first. */
  #version = '';
  #target: InitTarget | undefined;

  constructor(source: ConfigSource, sources: ConfigSources, listeners: ListenerSet) {
    this.#source = source;
    this.#sources = sources;
    this.#listeners = listeners;
    listeners.onFailure = (spec, error, isStart) => this.#failed(spec, error, isStart);
  }

  /** Subscribes to all listeners, or to a collection of that name. `init` waits for the first update. */
  start(init: InitManager, collection?: string): void {
    this.#target = init.add('LDS', isFileSource(this.#source));
    this.#sources.subscribe<Listener>({
      source: this.#source,
      type: 'listener',
      names: collection === undefined ? '*' : new Set([collection]),
      statPrefix: 'listener_manager.lds.',
      watcher: this,
    });
  }

  get version(): string {
    return this.#version;
  }

  /** The states of unusable resources, by name. */
  get failures(): ReadonlyMap<string, DynamicState> {
    return this.#failures;
  }

  *update(update: Update<Listener>): StepwiseUpdate {
    let hasChanged = false;
    const gone = removedNames(update, this.#known());
    const configs = update.resources.map(({ message }) => message);
    // When a new listener takes the address of a removed one, both change in one turn, so that clients always find a listener.
    const isAddressMoved = gone.size > 0 && this.#listeners.holdersOfAddresses(gone, configs).size > 0;
    let work = 0;
    for (const name of gone) {
      if (this.#remove(name)) hasChanged = true;
      this.#shadowed.delete(name);
      this.#unbound.delete(name);
      if (isAddressMoved || ++work < LISTENERS_PER_STEP) continue;
      work = 0;
      yield;
    }
    for (const { name } of [...update.resources, ...update.refused]) this.#unbound.delete(name);
    for (const name of this.#failures.keys()) if (!this.#unbound.has(name)) this.#failures.delete(name);
    const trades = this.#listeners.planAddressSwaps(update.resources.map(specOf));
    if (trades !== undefined && this.#apply(trades)) hasChanged = true;
    this.retryUnbound();
    const rejections: Rejection[] = [];
    for (const resource of update.resources) {
      try {
        const resourceChanged = this.#set(resource);
        if (resourceChanged) hasChanged = true;
        work += resourceChanged ? 1 : UNCHANGED_WORK;
      } catch (error) {
        rejections.push(this.#reject(resource, error));
        work++;
      }
      if (isAddressMoved || work < LISTENERS_PER_STEP) continue;
      work = 0;
      yield;
    }
    for (const resource of update.refused) {
      this.#failures.set(resource.name, refused(this.#stateOf(resource.name), resource));
      if ((work += REFUSED_WORK) < LISTENERS_PER_STEP) continue;
      work = 0;
      yield;
    }
    if (hasChanged) this.#version = update.version;
    this.#target?.ready();
    return rejections;
  }

  /** Called when static listeners may have been removed: dynamic ones with their names are used now. */
  staticsChanged(): void {
    for (const resource of [...this.#shadowed.values()]) {
      try {
        this.#set(resource);
      } catch (error) {
        this.#reject(resource, error);
      }
    }
  }

  fetchTimedOut(): void {
    this.#target?.ready();
  }

  /** Retries listeners whose addresses could not be bound. */
  retryUnbound(): void {
    this.#unbound.retryNow();
  }

  /** Stops all retries. */
  close(): void {
    this.#unbound.close();
  }

  /** Yields the names of all delivered listeners, in use or not. */
  *#known(): Generator<string> {
    for (const { isStatic, name } of this.#listeners.specs()) if (!isStatic) yield name;
    yield* this.#shadowed.keys();
    yield* this.#unbound.names;
  }

  #remove(name: string): boolean {
    const plan = this.#listeners.plan({ isStatic: false, set: [], removed: [name] });
    if (plan.names.length === 0) return false;
    void plan.apply();
    logger.info(`lds: remove listener '${shownName(name)}'`);
    return true;
  }

  /** Returns whether anything has changed. Throws when the listener cannot be used. */
  #set(resource: Resource<Listener>): boolean {
    const { name } = resource;
    if (this.#listeners.latest(name)?.isStatic) this.#shadowed.set(name, resource);
    else this.#shadowed.delete(name);
    const plan = this.#listeners.plan({ isStatic: false, set: [specOf(resource)], removed: [] });
    const hasChanged = this.#apply(plan);
    if (!hasChanged) logger.debug(`lds: add/update listener '${shownName(name)}' skipped`);
    return hasChanged;
  }

  /** Returns whether anything has changed. Later failures are reported to onFailure. */
  #apply(plan: ListenerPlan): boolean {
    void plan.apply();
    for (const name of plan.names) logger.info(`lds: add/update listener '${shownName(name)}'`);
    return plan.names.length > 0;
  }

  #reject(resource: Resource<Listener>, error: unknown): Rejection {
    const { message, name } = resource;
    const details = messageWithoutSecrets(refusalText(error), message);
    logger.warning(`lds: listener '${shownName(name)}' cannot be used: ${details}`);
    this.#failures.set(name, rejected(this.#stateOf(name), resource, { details }));
    const shortage = shortageIn(error);
    if (shortage !== undefined) this.#unbound.add(specOf(resource), shortage);
    return { name, details };
  }

  /** Returns a function that applies a listener that could not be bound before; undefined when it still cannot be. */
  #planRetry(spec: ListenerSpec): (() => void) | undefined {
    const plan = this.#listeners.planRetry(spec);
    if (plan === undefined) return undefined;
    return () => {
      this.#failures.delete(spec.name);
      if (this.#apply(plan)) this.#version = spec.state.versionInfo;
    };
  }

  #stateOf(name: string): DynamicState {
    return this.#listeners.byName.get(name)?.spec.state ?? REQUESTED;
  }

  /** Called when an accepted listener has failed before it was in use. */
  #failed(spec: ListenerSpec, error: unknown, isStart: boolean): void {
    const { config, isStatic, name, shown: message, state } = spec;
    if (isStatic) return;
    const details = messageWithoutSecrets(refusalText(error), config);
    const version = state.versionInfo;
    this.#failures.set(name, refused(this.#stateOf(name), { version, details, message }));
    const shortage = shortageIn(error);
    if (shortage === undefined) return;
    this.#unbound.add(spec, shortage);
    // A parent that listens on the address has offered its socket, which remains available until this process is live.
    if (isStart && shortage === ADDRESS_IN_USE) this.retryUnbound();
  }
}

function specOf(resource: Resource<Listener>): ListenerSpec {
  const { message: config, name, sensitive } = resource;
  return {
    name,
    config,
    isStatic: false,
    number: undefined,
    shown: shown(config, sensitive),
    state: accepted(resource),
  };
}
