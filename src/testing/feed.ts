// Sends the pieces of a body one by one, each in a turn of its own, as long as the filter does not pause them.

export interface FeedEvents {
  /** The message has ended early. */
  isOver(): boolean;
  send(piece: Uint8Array, isLast: boolean): void;
  /** Called after the last piece. */
  end(): void;
}

export class Feed {
  #pieces: readonly Uint8Array[] = [];
  #next = 0;
  #events: FeedEvents | undefined;
  #isPaused = false;
  #isScheduled = false;

  run(pieces: readonly Uint8Array[], events: FeedEvents): void {
    this.#pieces = pieces;
    this.#events = events;
    this.#schedule();
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled || this.#events === undefined) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#step();
    });
  }

  #step(): void {
    const events = this.#events;
    if (events === undefined || this.#isPaused || events.isOver()) return;
    const piece = this.#pieces[this.#next++];
    if (piece !== undefined) {
      events.send(piece, this.#next === this.#pieces.length);
      return this.#schedule();
    }
    this.#events = undefined;
    events.end();
  }
}
