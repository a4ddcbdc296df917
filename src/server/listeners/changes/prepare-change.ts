// Prepares changes of listeners: does everything that can fail, without visible effect.

import { isDeepStrictEqual } from 'node:util';
import { shownName } from '../../../common/text/shown.js';
import type { Listener } from '../../../config/generated/api.js';
import { getLogger } from '../../../log/logger.js';
import { claimedText } from '../version/claimed-address.js';
import type { InheritedSockets } from '../version/inherited-sockets.js';
import { changesReusePort, ListenError } from '../version/listen-sockets.js';
import { type ListenerContext, type ListenerSpec, PrimaryListener } from '../version/primary-listener.js';
import { claimedAddress, isAddressTaken, releasesAddress } from './addresses.js';
import { changesOnlyChains, initManagerOf, ListenerUpdate } from './listener-update.js';
import { type ListenerStages, latestOf, type PresentListeners, versionsOf } from './present-listeners.js';
import { socketSource } from './socket-source.js';

/** Listeners that are added, changed and removed together. */
export interface ListenerChange {
  /** The listeners are the bootstrap's, which LDS cannot change, instead of LDS's, which the bootstrap cannot change. */
  readonly isStatic: boolean;
  readonly set: readonly ListenerSpec[];
  readonly removed: readonly string[];
}

export interface PreparedChange {
  readonly removed: ReadonlySet<string>;
  /** Names of listeners that return to their active configuration: their updates are dropped. */
  readonly restored: readonly string[];
  readonly updates: readonly ListenerUpdate[];
  /** LDS listeners held until a child process that serves is dead. */
  readonly held: readonly ListenerSpec[];
  /** Versions whose listeners move to another address: `updates` may have the old one. */
  readonly moving: ReadonlySet<PrimaryListener>;
}

const logger = getLogger('config');

/** `parent`: the parent's sockets. Throws ListenError, or the error of an unusable filter, with nothing left behind. */
export function prepare(
  { isStatic, removed, set }: ListenerChange,
  now: PresentListeners,
  context: ListenerContext,
  parent: InheritedSockets | undefined,
): PreparedChange {
  const preparation = new Preparation(isStatic, now, context, parent);
  try {
    for (const name of removed) preparation.remove(name);
    for (const spec of set) preparation.noteMoves(spec);
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
  readonly moving = new Set<PrimaryListener>();
  readonly #isStatic: boolean;
  readonly #now: PresentListeners;
  readonly #context: ListenerContext;
  readonly #parent: InheritedSockets | undefined;

  constructor(
    isStatic: boolean,
    now: PresentListeners,
    context: ListenerContext,
    parent: InheritedSockets | undefined,
  ) {
    this.#isStatic = isStatic;
    this.#now = now;
    this.#context = context;
    this.#parent = parent;
  }

  remove(name: string): void {
    const isHeld = !this.#isStatic && this.#now.held.has(name);
    if (isHeld || latestOf(this.#now.stagesOf(name))?.isStatic === this.#isStatic) this.removed.add(name);
    else logger.debug(`unknown/locked listener '${shownName(name)}'. no remove`);
  }

  /** Records addresses that the listener's versions release. Called for all listeners before add(), for which they are free. */
  noteMoves({ config, name }: ListenerSpec): void {
    if (this.#now.isReplaced || this.#isStopped(config)) return;
    for (const version of versionsOf(this.#now.stagesOf(name))) {
      if (version.spec.isStatic === this.#isStatic && releasesAddress(version, config)) this.moving.add(version);
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
          `Listener ${name}: reuse port cannot be changed during an update; remove the listener first, then add it`,
        );
      }
      this.updates.push(this.#update(spec, present));
    }
  }

  #isStopped(config: Listener): boolean {
    const { isRunning, stopped } = this.#now;
    return isRunning && stopped.includes(config);
  }

  /** Throws ListenError when the bootstrap has a listener with the name of one of LDS. */
  #isLocked({ isStatic, name }: ListenerSpec): boolean {
    if (isStatic === this.#isStatic) return false;
    if (!isStatic)
      throw new ListenError(`listener '${name}' belongs to LDS: the bootstrap cannot have a listener with that name`);
    return true;
  }

  #update(spec: ListenerSpec, present: ListenerStages): ListenerUpdate {
    const { config, name } = spec;
    const { isRunning, serverInit } = this.#now;
    const { active } = present;
    const init = serverInit ?? initManagerOf(name, config);
    if (isRunning && active !== undefined && !active.isStopped && changesOnlyChains(active.config, config)) {
      return new ListenerUpdate(spec, init, active, active.createChains(config, init));
    }
    this.#checkAddress(spec, present);
    const { address, reused } = socketSource(name, config, this.#socketOwners(present), this.#parent);
    const listener = new PrimaryListener(spec, this.#context, init, reused, address);
    return new ListenerUpdate(spec, init, listener, undefined);
  }

  /** Throws ListenError when another listener, or an update of one, has the address. */
  #checkAddress({ config, name }: ListenerSpec, present: ListenerStages): void {
    const address = claimedAddress(config, present);
    const stays = (version: PrimaryListener) =>
      version.name !== name && !this.removed.has(version.name) && !this.moving.has(version);
    if (!isAddressTaken(address, this.#versionsThat(stays))) return;
    throw new ListenError(
      `error adding listener: '${name}' has duplicate address '${claimedText(address!)}' as existing listener, to check if the listener ` +
        "has duplicated addresses with other listeners or 'enable_reuse_port' is set to 'false' for the listener",
      true,
    );
  }

  /** Yields present versions for which `stay` is true, and those of the updates. */
  *#versionsThat(stay: (version: PrimaryListener) => boolean): Generator<PrimaryListener> {
    for (const version of this.#now.versions()) if (stay(version)) yield version;
    for (const { listener } of this.updates) yield listener;
  }

  /** Yields versions whose sockets a new one may share. */
  *#socketOwners(present: ListenerStages): Generator<PrimaryListener> {
    yield* versionsOf(present);
    for (const name of this.removed) yield* versionsOf(this.#now.stagesOf(name));
    yield* this.moving;
    yield* this.#now.postponed;
    // Workers may still be stopping these.
    yield* this.#now.draining.listeners();
  }
}
