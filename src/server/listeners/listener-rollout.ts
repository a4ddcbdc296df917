// How versions of listeners, and their filter chains, come into use at the workers, and how they go.

import { addressText } from '../../io/address.js';
import { getLogger } from '../../log/logger.js';
import type { ListenerSnapshot } from '../../worker/messages.js';
import type { ListenerDrains } from '../draining/listener-drains.js';
import type { Primary } from '../primary.js';
import type { Publish } from '../workers/snapshots.js';
import type { FormerListeners } from './former-listeners.js';
import type { ListenerUpdate } from './listener-update.js';
import type { PrimaryListener } from './primary-listener.js';

const logger = getLogger('main');

export class ListenerRollout {
  readonly #primary: Primary;
  readonly #drains: ListenerDrains;
  readonly #formers: FormerListeners;
  readonly #publish: Publish;

  constructor(primary: Primary, drains: ListenerDrains, formers: FormerListeners, publish: Publish) {
    this.#primary = primary;
    this.#drains = drains;
    this.#formers = formers;
    this.#publish = publish;
  }

  /**
   * Workers build a version beside what they have, or give new connections to other chains. Resolves when all of them do; rejects
   * when one cannot.
   */
  build(update: ListenerUpdate): Promise<void> {
    update.isPublished = true;
    this.publish(update.listener, update.chains);
    const { snapshots } = this.#primary;
    return snapshots.outcome(snapshots.version - 1);
  }

  /** Workers are told of the version, with `chains` for new connections. */
  publish(listener: PrimaryListener, chains = listener.chains): void {
    const snapshot = this.#snapshot(listener, chains);
    this.#publish({ scopes: listener.scopesWith(chains), listeners: [snapshot] });
  }

  /** For a worker that begins: what is in use, and what others are just being told. */
  *snapshots(active: PrimaryListener | undefined, warming: ListenerUpdate | undefined): Generator<ListenerSnapshot> {
    const update = warming?.isPublished ? warming : undefined;
    if (active !== undefined) yield this.#snapshot(active, update?.chains ?? active.chains);
    if (update !== undefined && update.chains === undefined) {
      yield this.#snapshot(update.listener, update.listener.chains);
    }
  }

  /** Workers accept on its sockets. Throws ListenError. */
  accept(listener: PrimaryListener): void {
    listener.startListening();
    if (!listener.hasSockets) return;
    logger.info(`listener '${listener.name}' listens on ${addressText(listener.address)}`);
    this.#primary.workers.broadcast({ kind: 'accept', id: listener.id });
  }

  /** A version is not used any more: it stops to accept, and drains. `goesOn`: others accept at its sockets, and at what waits. */
  leave(listener: PrimaryListener, goesOn: boolean): void {
    if (!listener.isStopped) {
      listener.stop();
      void this.#drains.stop([listener], !goesOn);
    }
    this.#formers.addListener(listener);
  }

  /** A version that nobody was connected to: workers that have it forget it. */
  forget(listener: PrimaryListener): void {
    listener.stop();
    this.#publish({ removedListeners: [listener.id], removedScopes: listener.retire() });
    this.#primary.snapshots.whenApplied(() => listener.free());
  }

  /** An update that is not in use is dropped, because of `why`. */
  drop(update: ListenerUpdate, why: unknown): void {
    const { chains, isPublished, listener, newChains } = update;
    if (!isPublished) update.discard();
    else if (chains === undefined) this.forget(listener);
    else {
      // Workers that could build the new chains have given connections to them.
      this.publish(listener);
      this.#formers.addChains(listener, newChains);
    }
    update.settle(why);
  }

  #snapshot(listener: PrimaryListener, chains: PrimaryListener['chains']): ListenerSnapshot {
    return listener.snapshot(this.#drains.manager.windowOf(listener.config), chains);
  }
}
