// Listeners that a new worker could not build although the ended one whose place it takes had them, as when the directory of an
// access log is gone. The kernel goes on giving connections to their sockets, so they are tried again until they can be built.

import { shownName } from '../../common/text/shown.js';
import { getLogger } from '../../log/logger.js';
import type { InlineRoutesSnapshot, ListenerSnapshot } from '../messages/messages.js';

const RETRY_MS = 1000;

const logger = getLogger('config');

export class UnbuiltListeners {
  /** Throws when it cannot be built, with everything as it was. */
  readonly #build: (snapshot: ListenerSnapshot) => void;
  /** By id, as they are by now. */
  readonly #snapshots = new Map<number, ListenerSnapshot>();
  #retry: NodeJS.Timeout | undefined;

  constructor(build: (snapshot: ListenerSnapshot) => void) {
    this.#build = build;
  }

  add(snapshot: ListenerSnapshot): void {
    this.#snapshots.set(snapshot.id, snapshot);
    this.#retry ??= setTimeout(() => this.#buildAll(), RETRY_MS);
  }

  /** It has been built, or is not wanted any more. */
  delete(id: number): void {
    this.#snapshots.delete(id);
  }

  /** What workers have been told of a listener since. */
  change(id: number, change: Partial<Pick<ListenerSnapshot, 'chains' | 'drain' | 'fds' | 'isListening'>>): void {
    const snapshot = this.#snapshots.get(id);
    if (snapshot !== undefined) this.#snapshots.set(id, { ...snapshot, ...change });
  }

  setRoutes({ chain: id, listener, routes }: InlineRoutesSnapshot): void {
    const chains = this.#snapshots.get(listener)?.chains;
    if (chains === undefined) return;
    this.change(listener, { chains: chains.map((chain) => (chain.id === id ? { ...chain, routes } : chain)) });
  }

  close(): void {
    clearTimeout(this.#retry);
    this.#snapshots.clear();
  }

  #buildAll(): void {
    this.#retry = undefined;
    for (const snapshot of [...this.#snapshots.values()]) {
      try {
        this.#build(snapshot);
        logger.info(`listener '${shownName(snapshot.name)}' can be built again`);
      } catch {
        this.add(snapshot);
      }
    }
  }
}
