// The listener discovery service: listeners of files and management servers come, change and go.

import { shownName } from '../../common/text/shown.js';
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

/** Listeners that come or go without a turn for others: some milliseconds' work. */
const LISTENERS_PER_STEP = 16;
/** What one that has not changed counts. */
const UNCHANGED_WORK = 1 / 16;

export class ListenerDiscovery implements Watcher<Listener> {
  readonly #source: ConfigSource;
  readonly #sources: ConfigSources;
  readonly #listeners: ListenerSet;
  /**
   * Of resources that cannot be used, by name ('' where that cannot be read), as of the last update; and of those that wait for
   * their addresses.
   */
  readonly #failures = new Map<string, DynamicState>();
  /** Those whose names static listeners have. */
  readonly #shadowed = new Map<string, Resource<Listener>>();
  readonly #unbound = new UnboundListeners((spec) => this.#planAgain(spec));
  /** Of the last update that has changed a listener; '' when there was none. */
  #version = '';
  #target: InitTarget | undefined;

  constructor(source: ConfigSource, sources: ConfigSources, listeners: ListenerSet) {
    this.#source = source;
    this.#sources = sources;
    this.#listeners = listeners;
    listeners.onFailure = (spec, error, isStart) => this.#failed(spec, error, isStart);
  }

  /** Subscribes; `init` waits for the first update. */
  start(init: InitManager): void {
    this.#target = init.add('LDS');
    this.#sources.subscribe<Listener>({
      source: this.#source,
      type: 'listener',
      names: '*',
      statPrefix: 'listener_manager.lds.',
      watcher: this,
    });
  }

  get version(): string {
    return this.#version;
  }

  /** By name. */
  get failures(): ReadonlyMap<string, DynamicState> {
    return this.#failures;
  }

  *update(update: Update<Listener>): StepwiseUpdate {
    let hasChanged = false;
    const gone = removedNames(update, this.#known());
    const configs = update.resources.map(({ message }) => message);
    // Addresses of what goes are free for what comes: in one turn, so that clients find somebody there.
    const isTraded = gone.size > 0 && this.#listeners.whoseAddressesAreWanted(gone, configs).size > 0;
    let work = 0;
    for (const name of gone) {
      if (this.#remove(name)) hasChanged = true;
      this.#shadowed.delete(name);
      this.#unbound.delete(name);
      if (isTraded || ++work < LISTENERS_PER_STEP) continue;
      work = 0;
      yield;
    }
    for (const { name } of [...update.resources, ...update.refused]) this.#unbound.delete(name);
    for (const name of this.#failures.keys()) if (!this.#unbound.has(name)) this.#failures.delete(name);
    const trades = this.#listeners.planTrades(update.resources.map(specOf));
    if (trades !== undefined && this.#apply(trades)) hasChanged = true;
    this.bindAgain();
    const rejections: Rejection[] = [];
    for (const resource of update.resources) {
      try {
        const hasThis = this.#set(resource);
        if (hasThis) hasChanged = true;
        work += hasThis ? 1 : UNCHANGED_WORK;
      } catch (error) {
        rejections.push(this.#reject(resource, error));
        work++;
      }
      if (isTraded || work < LISTENERS_PER_STEP) continue;
      work = 0;
      yield;
    }
    for (const resource of update.refused) {
      this.#failures.set(resource.name, refused(this.#stateOf(resource.name), resource));
    }
    if (hasChanged) this.#version = update.version;
    this.#target?.ready();
    return rejections;
  }

  /** Static listeners may have gone: those that came under their names are used now. */
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

  /** Listeners whose addresses could not be had are tried again. */
  bindAgain(): void {
    this.#unbound.tryNow();
  }

  /** Nothing is tried again any more. */
  close(): void {
    this.#unbound.close();
  }

  /** Names of those that have come, be they in use or not. */
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

  /** Returns whether it changes anything. Throws when it cannot be used. */
  #set(resource: Resource<Listener>): boolean {
    const { name } = resource;
    if (this.#listeners.latest(name)?.isStatic) this.#shadowed.set(name, resource);
    else this.#shadowed.delete(name);
    const plan = this.#listeners.plan({ isStatic: false, set: [specOf(resource)], removed: [] });
    const hasChanged = this.#apply(plan);
    if (!hasChanged) logger.debug(`lds: add/update listener '${shownName(name)}' skipped`);
    return hasChanged;
  }

  /** Returns whether it changes anything. What turns out later comes to onFailure. */
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

  /** Takes up a listener that could not be had; undefined: it still cannot be. */
  #planAgain(spec: ListenerSpec): (() => void) | undefined {
    const plan = this.#listeners.planAgain(spec);
    if (plan === undefined) return undefined;
    return () => {
      this.#failures.delete(spec.name);
      if (this.#apply(plan)) this.#version = spec.state.versionInfo;
    };
  }

  #stateOf(name: string): DynamicState {
    return this.#listeners.byName.get(name)?.spec.state ?? REQUESTED;
  }

  /** It was accepted, and has turned out to be unusable when it was to be used. */
  #failed(spec: ListenerSpec, error: unknown, isStart: boolean): void {
    const { config, isStatic, name, shown: message, state } = spec;
    if (isStatic) return;
    const details = messageWithoutSecrets(refusalText(error), config);
    const version = state.versionInfo;
    this.#failures.set(name, refused(this.#stateOf(name), { version, details, message }));
    const shortage = shortageIn(error);
    if (shortage === undefined) return;
    this.#unbound.add(spec, shortage);
    // The parent that listens at what was only bound here has offered its socket, which is there until this process is live.
    if (isStart && shortage === ADDRESS_IN_USE) this.bindAgain();
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
