// Changes of listeners before they happen: everything that could fail is done, and nobody sees anything of it yet.

import { isDeepStrictEqual } from 'node:util';
import { shownName } from '../../../common/text/shown.js';
import type { Listener } from '../../../config/generated/api.js';
import { getLogger } from '../../../log/logger.js';
import type { InheritedSockets } from '../version/inherited-sockets.js';
import { changesReusePort, ListenError } from '../version/listen-sockets.js';
import { type ListenerMakers, type ListenerSpec, PrimaryListener } from '../version/primary-listener.js';
import { isAddressTaken, leavesAddress, wantedAddress } from './addresses.js';
import { changesChainsAlone, initManagerOf, ListenerUpdate } from './listener-update.js';
import { type ListenerStages, latestOf, type PresentListeners, versionsOf } from './present-listeners.js';
import { socketSource } from './socket-source.js';

/** Listeners that come, change and go together. */
export interface ListenerChange {
  /** They are those of the bootstrap, which LDS cannot change; nor this those of LDS. */
  readonly isStatic: boolean;
  readonly set: readonly ListenerSpec[];
  readonly removed: readonly string[];
}

export interface PreparedChange {
  readonly removed: ReadonlySet<string>;
  /** Listeners whose configuration is again what is active: their updates are dropped. */
  readonly restored: readonly string[];
  readonly updates: readonly ListenerUpdate[];
  /** Listeners of LDS that are not looked at before a child process that serves is dead. */
  readonly held: readonly ListenerSpec[];
  /** Versions in whose places come others, elsewhere: `updates` may have their addresses. */
  readonly leaving: ReadonlySet<PrimaryListener>;
}

const logger = getLogger('config');

/** `parent`: what a parent process listens at. Throws ListenError, or what makes a filter unusable: then nothing is left. */
export function prepare(
  { isStatic, removed, set }: ListenerChange,
  now: PresentListeners,
  makers: ListenerMakers,
  parent: InheritedSockets | undefined,
): PreparedChange {
  const preparation = new Preparation(isStatic, now, makers, parent);
  try {
    for (const name of removed) preparation.remove(name);
    for (const spec of set) preparation.noteLeaving(spec);
    for (const spec of set) preparation.add(spec);
    return preparation;
  } catch (error) {
    for (const update of preparation.updates) update.discard();
    throw error;
  }
}

class Preparation implements PreparedChange {
  readonly removed = new Set<string>();
  readonly updates: ListenerUpdate[] = [];
  readonly restored: string[] = [];
  readonly held: ListenerSpec[] = [];
  readonly leaving = new Set<PrimaryListener>();
  readonly #isStatic: boolean;
  readonly #now: PresentListeners;
  readonly #makers: ListenerMakers;
  readonly #parent: InheritedSockets | undefined;

  constructor(isStatic: boolean, now: PresentListeners, makers: ListenerMakers, parent: InheritedSockets | undefined) {
    this.#isStatic = isStatic;
    this.#now = now;
    this.#makers = makers;
    this.#parent = parent;
  }

  remove(name: string): void {
    const isHeld = !this.#isStatic && this.#now.held.has(name);
    if (isHeld || latestOf(this.#now.stagesOf(name))?.isStatic === this.#isStatic) this.removed.add(name);
    else logger.debug(`unknown/locked listener '${shownName(name)}'. no remove`);
  }

  /** To be called for all before add(): the listener's versions may have addresses that others get. */
  noteLeaving({ config, name }: ListenerSpec): void {
    if (this.#now.isReplaced || this.#isStopped(config)) return;
    for (const version of versionsOf(this.#now.stagesOf(name))) {
      if (version.spec.isStatic === this.#isStatic && leavesAddress(version, config)) this.leaving.add(version);
    }
  }

  add(spec: ListenerSpec): void {
    const { config, name } = spec;
    if (this.#now.isReplaced) {
      logger.debug(`listener ${shownName(name)} is held: another process has taken over from this one`);
      if (!this.#isStatic) this.held.push(spec);
      return;
    }
    if (this.#isStopped(config)) {
      const direction = config.traffic_direction ?? 'UNSPECIFIED';
      logger.debug(
        `listener ${shownName(name)} can not be added because listeners in the traffic direction ${direction} are stopped`,
      );
      return;
    }
    const present = this.removed.has(name) ? {} : this.#now.stagesOf(name);
    const latest = latestOf(present);
    if (latest !== undefined && (this.#isLocked(latest) || isDeepStrictEqual(latest.config, config))) {
      logger.debug(`duplicate/locked listener '${shownName(name)}'. no add/update`);
    } else if (present.warming !== undefined && isDeepStrictEqual(present.active?.config, config)) {
      this.#checkAddress(spec, present);
      this.restored.push(name);
    } else {
      logger.debug(`begin add/update listener: name=${shownName(name)}`);
      if (latest !== undefined && changesReusePort(latest.config, config)) {
        throw new ListenError(
          `Listener ${name}: reuse port cannot be changed during an update; remove the listener first, and add it then`,
        );
      }
      this.updates.push(this.#update(spec, present));
    }
  }

  #isStopped(config: Listener): boolean {
    const { isRunning, stopped } = this.#now;
    return isRunning && stopped.includes(config);
  }

  /** Throws ListenError when the bootstrap wants a listener that is one of LDS. */
  #isLocked({ isStatic, name }: ListenerSpec): boolean {
    if (isStatic === this.#isStatic) return false;
    if (!isStatic)
      throw new ListenError(`listener '${name}' is one of LDS: the bootstrap cannot have one of that name`);
    return true;
  }

  #update(spec: ListenerSpec, present: ListenerStages): ListenerUpdate {
    const { config, name } = spec;
    const { isRunning, serverInit } = this.#now;
    const { active } = present;
    const init = serverInit ?? initManagerOf(name, config);
    if (isRunning && active !== undefined && !active.isStopped && changesChainsAlone(active.config, config)) {
      return new ListenerUpdate(spec, init, active, active.makeChains(config, init));
    }
    this.#checkAddress(spec, present);
    const { address, former } = socketSource(name, config, this.#socketOwners(present), this.#parent);
    const listener = new PrimaryListener(spec, this.#makers, init, former, address);
    return new ListenerUpdate(spec, init, listener, undefined);
  }

  /** Throws ListenError when another listener has the address, or is about to. */
  #checkAddress({ config, name }: ListenerSpec, present: ListenerStages): void {
    const address = wantedAddress(config, present);
    const stays = (version: PrimaryListener) =>
      version.name !== name && !this.removed.has(version.name) && !this.leaving.has(version);
    if (!isAddressTaken(address, this.#versionsThat(stays))) return;
    throw new ListenError(
      `error adding listener: '${name}' has duplicate address '${address}' as existing listener, to check if the listener ` +
        "has duplicated addresses with other listeners or 'enable_reuse_port' is set to 'false' for the listener",
      true,
    );
  }

  /** Of those that there are, and those that are to come. */
  *#versionsThat(stay: (version: PrimaryListener) => boolean): Generator<PrimaryListener> {
    for (const version of this.#now.versions()) if (stay(version)) yield version;
    for (const { listener } of this.updates) yield listener;
  }

  /** Versions whose sockets a new one may go on with. */
  *#socketOwners(present: ListenerStages): Generator<PrimaryListener> {
    yield* versionsOf(present);
    for (const name of this.removed) yield* versionsOf(this.#now.stagesOf(name));
    yield* this.leaving;
    yield* this.#now.postponed;
    // Workers are just being told to stop.
    yield* this.#now.formers.listeners();
  }
}
