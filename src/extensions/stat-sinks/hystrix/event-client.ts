// One client of an event stream: a queue of pieces, which ends when the client falls too far behind.

/** Maximum number of flushes that begin while pieces of earlier ones are still queued. */
const MAX_LATE_FLUSHES = 4;

export class EventClient implements AsyncIterableIterator<Uint8Array> {
  readonly #left: (client: EventClient) => void;
  readonly #waiting: Uint8Array[] = [];
  #late = 0;
  #isOver = false;
  #wake: (() => void) | undefined;

  /** `left` is called once, when the stream ends for any reason. */
  constructor(left: (client: EventClient) => void) {
    this.#left = left;
  }

  /** Called when a flush begins. Ends the stream of a client that has not read several earlier ones. */
  begin(): void {
    this.#late = this.#waiting.length === 0 ? 0 : this.#late + 1;
    if (this.#late > MAX_LATE_FLUSHES) this.end();
  }

  put(piece: Uint8Array): void {
    if (this.#isOver) return;
    this.#waiting.push(piece);
    this.#wake?.();
  }

  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#waiting.length = 0;
    this.#left(this);
    this.#wake?.();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Uint8Array>> {
    while (!this.#isOver && this.#waiting.length === 0) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#wake = undefined;
    }
    const piece = this.#waiting.shift();
    return piece === undefined ? { done: true, value: undefined } : { done: false, value: piece };
  }

  /** Called when the client has disconnected. */
  async return(): Promise<IteratorResult<Uint8Array>> {
    this.end();
    return { done: true, value: undefined };
  }
}
