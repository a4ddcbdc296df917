// One client of an event stream: pieces wait for it, until it falls behind too far.

/** Flushes that may begin while pieces of earlier ones still wait. */
const MOST_LATE = 4;

export class EventClient implements AsyncIterableIterator<Uint8Array> {
  readonly #left: (client: EventClient) => void;
  readonly #waiting: Uint8Array[] = [];
  #late = 0;
  #isOver = false;
  #wake: (() => void) | undefined;

  /** `left` is called once, when the stream is over for whatever reason. */
  constructor(left: (client: EventClient) => void) {
    this.#left = left;
  }

  /** A flush begins. A client that has not taken several before loses the stream. */
  begin(): void {
    this.#late = this.#waiting.length === 0 ? 0 : this.#late + 1;
    if (this.#late > MOST_LATE) this.end();
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

  /** The client has left. */
  async return(): Promise<IteratorResult<Uint8Array>> {
    this.end();
    return { done: true, value: undefined };
  }
}
