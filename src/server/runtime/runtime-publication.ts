// Sends runtime changes to the workers. Large ones are sent in parts, and other events are served between the parts.

import { nextTurn } from '../../common/time/next-turn.js';
import type { RuntimeChange } from '../../runtime/snapshot.js';
import type { ToWorker } from '../../worker/messages/messages.js';

/** Entries of a part: about 1 ms of work for each worker. */
const PART = 1000;

export interface PublishedWorkers {
  readonly isStarted: boolean;
  broadcast(message: ToWorker): void;
}

export class RuntimePublication {
  readonly #workers: PublishedWorkers;
  readonly #queue: RuntimeChange[] = [];
  #sending: Promise<void> | undefined;

  constructor(workers: PublishedWorkers) {
    this.#workers = workers;
  }

  /** Sends a change after those sent before. Workers apply it as a whole. */
  send(change: RuntimeChange): void {
    // Workers start with all values.
    if (!this.#workers.isStarted) return;
    if (this.#sending === undefined && change.entries.length <= PART) {
      this.#sendPart(change, 0);
      return;
    }
    this.#queue.push(change);
    this.#sending ??= this.#sendAll();
  }

  /** Resolves when all changes so far are sent to the workers. */
  async sent(): Promise<void> {
    await this.#sending;
  }

  async #sendAll(): Promise<void> {
    for (let change = this.#queue.shift(); change !== undefined; change = this.#queue.shift()) {
      for (let from = 0; from === 0 || from < change.entries.length; from += PART) {
        await nextTurn();
        this.#sendPart(change, from);
      }
    }
    this.#sending = undefined;
  }

  #sendPart({ entries, version }: RuntimeChange, from: number): void {
    const to = from + PART;
    this.#workers.broadcast({
      kind: 'runtime',
      change: { version, entries: entries.slice(from, to) },
      isWhole: to >= entries.length,
    });
  }
}
