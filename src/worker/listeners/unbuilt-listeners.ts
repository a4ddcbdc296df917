// Listeners that a replacement worker could not build although its predecessor had them, for example because the directory of an
// access log is missing. The kernel still assigns connections to their sockets, so building is retried until it succeeds.

import { shownName } from '../../common/text/shown.js';
import { getLogger } from '../../log/logger.js';
import type { InlineRoutesSnapshot, ListenerSnapshot } from '../messages/messages.js';

const RETRY_MS = 1000;

const logger = getLogger('config');

export class UnbuiltListeners {
  /** Throws when it cannot be built, without side effects. */
  readonly #build: (snapshot: ListenerSnapshot) => void;
  /** Current snapshots by id. */
  readonly #snapshots = new Map<number, ListenerSnapshot>();
  #retry: NodeJS.Timeout | undefined;

  constructor(build: (snapshot: ListenerSnapshot) => void) {
    this.#build = build;
  }

  add(snapshot: ListenerSnapshot): void {
    this.#snapshots.set(snapshot.id, snapshot);
    this.#retry ??= setTimeout(() => this.#buildAll(), RETRY_MS);
  }

  /** Called when it has been built or removed. */
  delete(id: number): void {
    this.#snapshots.delete(id);
  }

  /** Applies a later change to a listener's snapshot. */
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
