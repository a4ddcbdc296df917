// Changes of listeners before they happen: everything that could fail is done, and nobody sees anything of it yet.

import { isDeepStrictEqual } from 'node:util';
import type { Listener } from '../../../config/generated/api.js';
import { getLogger } from '../../../log/logger.js';
import type { InitManager } from '../../init/init-manager.js';
import type { InheritedSockets } from '../version/inherited-sockets.js';
import { changesReusePort, ListenError } from '../version/listen-sockets.js';
import { type ListenerMakers, type ListenerSpec, PrimaryListener } from '../version/primary-listener.js';
import { isAddressTaken, leavesAddress, wantedAddress } from './addresses.js';
import type { FormerListeners } from './former-listeners.js';
import { type ListenerEntry, versionsOf } from './listener-entry.js';
import { changesChainsAlone, initManagerOf, ListenerUpdate } from './listener-update.js';
import { socketSource } from './socket-source.js';
import type { StoppedDirections } from './stopped-directions.js';

/** Listeners that come, change and go together. */
export interface ListenerChange {
  readonly set: readonly ListenerSpec[];
  readonly removed: readonly string[];
}

/** What there is before the change. */
export interface PresentListeners {
  readonly entries: ReadonlyMap<string, ListenerEntry>;
  readonly formers: FormerListeners;
  /** What is to be left, and still accepts. */
  readonly postponed: readonly PrimaryListener[];
  readonly stopped: StoppedDirections;
  /** Workers accept. */
  readonly isRunning: boolean;
  /** Of the server, before that. */
  readonly serverInit: InitManager | undefined;
  readonly parent: InheritedSockets | undefined;
}

export interface PreparedChange {
  /** Its listeners are those of the bootstrap. */
  readonly isStatic: boolean;
  readonly removed: readonly string[];
  /** Listeners whose configuration is again what is active: their updates are dropped. */
  readonly restored: readonly string[];
  readonly updates: readonly ListenerUpdate[];
  /** Versions in whose places come others, elsewhere: `updates` may have their addresses. */
  readonly leaving: ReadonlySet<PrimaryListener>;
}

const logger = getLogger('config');

/** Throws ListenError, or what makes a filter unusable: then nothing is left. */
export function prepare(
  change: ListenerChange,
  isStatic: boolean,
  now: PresentListeners,
  makers: ListenerMakers,
): PreparedChange {
  const removed = change.removed.filter((name) => now.entries.get(name)?.isStatic === isStatic);
  for (const name of change.removed) {
    if (!removed.includes(name)) logger.debug(`unknown/locked listener '${name}'. no remove`);
  }
  const preparation = new Preparation(new Set(removed), isStatic, now, makers);
  try {
    for (const spec of change.set) preparation.noteLeaving(spec);
    for (const spec of change.set) preparation.add(spec);
  } catch (error) {
    for (const update of preparation.updates) update.discard();
    throw error;
  }
  const { leaving, restored, updates } = preparation;
  return { isStatic, removed, restored, updates, leaving };
}

class Preparation {
  readonly updates: ListenerUpdate[] = [];
  readonly restored: string[] = [];
  readonly leaving = new Set<PrimaryListener>();
  readonly #removed: ReadonlySet<string>;
  readonly #isStatic: boolean;
  readonly #now: PresentListeners;
  readonly #makers: ListenerMakers;

  constructor(removed: ReadonlySet<string>, isStatic: boolean, now: PresentListeners, makers: ListenerMakers) {
    this.#removed = removed;
    this.#isStatic = isStatic;
    this.#now = now;
    this.#makers = makers;
  }

  /** To be called for all before add(): the listener's versions may have addresses that others get. */
  noteLeaving({ config, name }: ListenerSpec): void {
    const entry = this.#now.entries.get(name);
    if (entry?.isStatic !== this.#isStatic || this.#isStopped(config)) return;
    for (const version of versionsOf(entry)) if (leavesAddress(version, config)) this.leaving.add(version);
  }

  add(spec: ListenerSpec): void {
    const { config, name } = spec;
    if (this.#isStopped(config)) {
      const direction = config.traffic_direction ?? 'UNSPECIFIED';
      logger.debug(
        `listener ${name} can not be added because listeners in the traffic direction ${direction} are stopped`,
      );
      return;
    }
    const entry = this.#removed.has(name) ? undefined : this.#now.entries.get(name);
    const latest = entry?.warming?.spec.config ?? entry?.active?.config;
    if (entry !== undefined && (this.#isLocked(entry) || isDeepStrictEqual(latest, config))) {
      logger.debug(`duplicate/locked listener '${name}'. no add/update`);
    } else if (entry?.warming !== undefined && isDeepStrictEqual(entry.active?.config, config)) {
      this.#checkAddress(spec, entry);
      this.restored.push(name);
    } else {
      logger.debug(`begin add/update listener: name=${name}`);
      if (latest !== undefined && changesReusePort(latest, config)) {
        throw new ListenError(
          `Listener ${name}: reuse port cannot be changed during an update; remove the listener first, and add it then`,
        );
      }
      this.updates.push(this.#update(spec, entry));
    }
  }

  #isStopped(config: Listener): boolean {
    const { isRunning, stopped } = this.#now;
    return isRunning && stopped.includes(config);
  }

  /** Throws ListenError when the bootstrap wants a listener that is one of LDS. */
  #isLocked({ isStatic, name }: ListenerEntry): boolean {
    if (isStatic === this.#isStatic) return false;
    if (!isStatic)
      throw new ListenError(`listener '${name}' is one of LDS: the bootstrap cannot have one of that name`);
    return true;
  }

  #update(spec: ListenerSpec, entry: ListenerEntry | undefined): ListenerUpdate {
    const { config, name } = spec;
    const { isRunning, parent, serverInit } = this.#now;
    const init = serverInit ?? initManagerOf(name, config);
    const active = entry?.active;
    if (isRunning && active !== undefined && !active.isStopped && changesChainsAlone(active.config, config)) {
      return new ListenerUpdate(spec, init, active, active.makeChains(config, init));
    }
    this.#checkAddress(spec, entry);
    const { address, former } = socketSource(name, config, this.#socketOwners(entry), parent);
    const listener = new PrimaryListener(spec, this.#makers, init, former, address);
    return new ListenerUpdate(spec, init, listener, undefined);
  }

  /** Throws ListenError when another listener has the address, or is about to. */
  #checkAddress({ config, name }: ListenerSpec, entry: ListenerEntry | undefined): void {
    const address = wantedAddress(config, entry);
    const others = [...this.#now.entries.values()].filter(
      (entry) => entry.name !== name && !this.#removed.has(entry.name),
    );
    const versions = [
      ...others.flatMap(versionsOf).filter((version) => !this.leaving.has(version)),
      ...this.updates.map(({ listener }) => listener),
    ];
    if (!isAddressTaken(address, versions)) return;
    throw new ListenError(
      `error adding listener: '${name}' has duplicate address '${address}' as existing listener, to check if the listener ` +
        "has duplicated addresses with other listeners or 'enable_reuse_port' is set to 'false' for the listener",
      true,
    );
  }

  /** Versions whose sockets a new one may go on with. */
  *#socketOwners(entry: ListenerEntry | undefined): Generator<PrimaryListener> {
    for (const each of [entry, ...[...this.#removed].map((name) => this.#now.entries.get(name))])
      yield* versionsOf(each);
    yield* this.leaving;
    yield* this.#now.postponed;
    // Workers are just being told to stop.
    yield* this.#now.formers.listeners();
  }
}
