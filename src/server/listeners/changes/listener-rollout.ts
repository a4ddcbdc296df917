// Brings listener versions and filter chains to the workers, and takes them away again.

import { addressText } from '../../../io/addresses/address.js';
import { getLogger } from '../../../log/logger.js';
import type { ListenerSnapshot } from '../../../worker/messages/messages.js';
import type { ListenerDrains } from '../../draining/listener-drains.js';
import type { Primary } from '../../primary.js';
import type { Publish } from '../../workers/snapshots.js';
import type { PrimaryListener } from '../version/primary-listener.js';
import type { FormerListeners } from './former-listeners.js';
import type { ListenerUpdate } from './listener-update.js';

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
   * Has workers build a new version beside the present one, or use other chains for new connections. Resolves when all of them have;
   * rejects when one cannot.
   */
  build(update: ListenerUpdate): Promise<void> {
    update.isPublished = true;
    this.publish(update.listener, update.chains);
    const { snapshots } = this.#primary;
    return snapshots.outcome(snapshots.version - 1);
  }

  /** Tells workers of a version, with `chains` for new connections. */
  publish(listener: PrimaryListener, chains = listener.chains): void {
    const snapshot = this.#snapshot(listener, chains);
    this.#publish({ scopes: listener.scopesWith(chains), listeners: [snapshot] });
  }

  /** For a worker that starts: what is in use, and what the others have just been told to build. */
  *snapshots(active: PrimaryListener | undefined, warming: ListenerUpdate | undefined): Generator<ListenerSnapshot> {
    const update = warming?.isPublished ? warming : undefined;
    if (active !== undefined) yield this.#snapshot(active, update?.chains ?? active.chains);
    if (update !== undefined && update.chains === undefined) {
      yield this.#snapshot(update.listener, update.listener.chains);
    }
  }

  /** Lets workers accept on its sockets. Throws ListenError. */
  accept(listener: PrimaryListener): void {
    listener.startListening();
    if (!listener.hasSockets) return;
    logger.info(`listener '${listener.name}' listens on ${addressText(listener.address)}`);
    this.#primary.workers.broadcast({ kind: 'accept', id: listener.id });
  }

  /** A replaced version stops accepting, and drains. `goesOn`: another version uses its sockets, and gets their pending connections. */
  leave(listener: PrimaryListener, goesOn: boolean): void {
    if (!listener.isStopped) {
      listener.stop();
      void this.#drains.stop([listener], { acceptRest: !goesOn });
    }
    this.#formers.addListener(listener);
  }

  /** A version that has never had a connection: workers forget it at once. */
  forget(listener: PrimaryListener): void {
    listener.stop();
    this.#publish({ removedListeners: [listener.id], removedScopes: listener.retire() });
    this.#primary.snapshots.whenApplied(() => listener.free());
  }

  /** Drops an update that is not in use yet, because of `why`. */
  drop(update: ListenerUpdate, why: unknown): void {
    const { chains, isPublished, listener, newChains } = update;
    if (!isPublished) update.discard();
    else if (chains === undefined) this.forget(listener);
    else {
      // Workers that could build the new chains may have given connections to them.
      this.publish(listener);
      this.#formers.addChains(listener, newChains);
    }
    update.settle(why);
  }

  #snapshot(listener: PrimaryListener, chains: PrimaryListener['chains']): ListenerSnapshot {
    return listener.snapshot(this.#drains.manager.windowOf(listener.config), chains);
  }
}
