// Publishes listener versions and filter chains to workers, which build them, accept on their sockets, and remove them.

import { shownName } from '../../../common/text/shown.js';
import { addressText } from '../../../io/addresses/address.js';
import { getLogger } from '../../../log/logger.js';
import type { ListenerSnapshot } from '../../../worker/messages/messages.js';
import type { DrainManager } from '../../draining/drain-manager.js';
import type { Primary } from '../../primary.js';
import type { Publish } from '../../workers/snapshots.js';
import type { PrimaryListener } from '../version/primary-listener.js';
import type { PublishedItem } from '../version/published-item.js';
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
   * Lets workers build a new version beside the current one, or use other chains for new connections. Resolves when all of them
   * have done so; rejects when one cannot.
   */
  build(update: ListenerUpdate): Promise<void> {
    update.isPublished = true;
    this.publish(update.listener, update.chains);
    return this.#primary.snapshots.outcome();
  }

  /** Publishes a version with `chains` for new connections. */
  publish(listener: PrimaryListener, chains = listener.chains): void {
    const snapshot = this.#snapshot(listener, chains);
    this.#publish({ statScopes: listener.scopesWith(chains), listeners: [snapshot] });
  }

  /** Returns the snapshots for a starting worker: listeners in use, and those that other workers are building. */
  snapshots(active: Iterable<PrimaryListener>, warming: Iterable<ListenerUpdate>): ListenerSnapshot[] {
    const published = [...warming].filter(({ isPublished }) => isPublished);
    const chains = new Map(published.map((update) => [update.listener, update.chains]));
    const listeners = new Set([...active, ...chains.keys()]);
    return [...listeners].map((listener) => this.#snapshot(listener, chains.get(listener) ?? listener.chains));
  }

  /** Starts accepting on the version's sockets. Throws ListenError. */
  accept(listener: PrimaryListener): void {
    listener.startListening();
    this.announce(listener);
  }

  /** Does the same for sockets that listen already. */
  announce(listener: PrimaryListener): void {
    if (!listener.hasSockets) return;
    logger.info(`listener '${shownName(listener.name)}' listens on ${addressText(listener.address)}`);
    this.#primary.workers.broadcast({ kind: 'accept', id: listener.id });
  }

  /** Removes these from the workers at once, ends their remaining connections, and then frees what was held for them. */
  remove(gone: readonly PublishedItem[]): void {
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
