// What workers are told of listener versions and filter chains: to build them, to accept on their sockets, to forget them.

import { shownName } from '../../../common/text/shown.js';
import { addressText } from '../../../io/addresses/address.js';
import { getLogger } from '../../../log/logger.js';
import type { ListenerSnapshot } from '../../../worker/messages/messages.js';
import type { DrainManager } from '../../draining/drain-manager.js';
import type { Primary } from '../../primary.js';
import type { Publish } from '../../workers/snapshots.js';
import type { KnownToWorkers } from '../version/known-to-workers.js';
import type { PrimaryListener } from '../version/primary-listener.js';
import type { ListenerUpdate } from './listener-update.js';

const logger = getLogger('main');

export class ListenerRollout {
  readonly #primary: Primary;
  readonly #drains: DrainManager;
  readonly #publish: Publish;

  constructor(primary: Primary, drains: DrainManager, publish: Publish) {
    this.#primary = primary;
    this.#drains = drains;
    this.#publish = publish;
  }

  /**
   * Has workers build a new version beside the present one, or use other chains for new connections. Resolves when all of them have;
   * rejects when one cannot.
   */
  build(update: ListenerUpdate): Promise<void> {
    update.isPublished = true;
    this.publish(update.listener, update.chains);
    return this.#primary.snapshots.outcome();
  }

  /** Tells workers of a version, with `chains` for new connections. */
  publish(listener: PrimaryListener, chains = listener.chains): void {
    const snapshot = this.#snapshot(listener, chains);
    this.#publish({ statScopes: listener.scopesWith(chains), listeners: [snapshot] });
  }

  /** For a worker that starts: what is in use, and what the others have just been told to build. */
  snapshots(active: Iterable<PrimaryListener>, warming: Iterable<ListenerUpdate>): ListenerSnapshot[] {
    const published = [...warming].filter(({ isPublished }) => isPublished);
    const chains = new Map(published.map((update) => [update.listener, update.chains]));
    const listeners = new Set([...active, ...chains.keys()]);
    return [...listeners].map((listener) => this.#snapshot(listener, chains.get(listener) ?? listener.chains));
  }

  /** Lets workers accept on its sockets. Throws ListenError. */
  accept(listener: PrimaryListener): void {
    listener.startListening();
    this.announce(listener);
  }

  /** The same for sockets that listen. */
  announce(listener: PrimaryListener): void {
    if (!listener.hasSockets) return;
    logger.info(`listener '${shownName(listener.name)}' listens on ${addressText(listener.address)}`);
    this.#primary.workers.broadcast({ kind: 'accept', id: listener.id });
  }

  /** Workers forget these at once, and end connections that they still have of them; what was kept for these is freed then. */
  forget(gone: readonly KnownToWorkers[]): void {
    this.#publish({
      removedListeners: gone.map(({ id }) => id),
      removedStatScopes: gone.flatMap((each) => each.retire()),
    });
    this.#primary.snapshots.whenApplied(() => {
      for (const each of gone) each.free();
    });
  }

  #snapshot(listener: PrimaryListener, chains: PrimaryListener['chains']): ListenerSnapshot {
    return listener.snapshot(this.#drains.windowOf(listener.config), chains);
  }
}
