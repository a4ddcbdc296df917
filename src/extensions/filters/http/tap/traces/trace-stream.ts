// The response body for an attached tap: traces as they arrive, or all at once when enough are collected.

import { MAX_TIMER_MS } from '../../../../sdk.js';
import type { TraceBudget } from './trace-budget.js';

/** The options of a buffered_admin sink. */
export interface Collecting {
  readonly maxTraces: number;
  /** 0: unlimited. */
  readonly timeoutMs: number;
}

export interface TraceStreamEvents {
  /** Called when no further traces are needed. */
  completed(): void;
  /** Called when everything was sent, or the client has disconnected. */
  ended(): void;
}

/** Maximum bytes of collected traces; beyond it the collection is complete. */
const MAX_COLLECTED_BYTES = 64 * 1024 * 1024;

interface Waiting {
  readonly worker: number;
  readonly bytes: Uint8Array;
}

export class TraceStream implements AsyncIterableIterator<Uint8Array> {
  readonly #budget: TraceBudget;
  readonly #events: TraceStreamEvents;
  /** Undefined: traces are sent as they arrive. */
  readonly #collecting: Collecting | undefined;
  readonly #timer: NodeJS.Timeout | undefined;
  #waiting: Waiting[] = [];
  #waitingBytes = 0;
  /** Further traces are dropped. */
  #isComplete = false;
  #isOver = false;
  #wake: (() => void) | undefined;

  constructor(budget: TraceBudget, collecting: Collecting | undefined, events: TraceStreamEvents) {
    this.#budget = budget;
    this.#collecting = collecting;
    this.#events = events;
    const timeoutMs = collecting?.timeoutMs ?? 0;
    if (timeoutMs > 0) this.#timer = setTimeout(() => this.complete(), Math.min(MAX_TIMER_MS, timeoutMs));
  }

  /** Called for each trace of a worker. */
  put(worker: number, bytes: Uint8Array): void {
    if (this.#isComplete) return this.#budget.release(worker, bytes.length);
    this.#waiting.push({ worker, bytes });
    this.#waitingBytes += bytes.length;
    if (this.#collecting === undefined) return this.#wake?.();
    // Collected traces have their own limit: the budget is free for further ones.
    this.#budget.release(worker, bytes.length);
    if (this.#waiting.length >= this.#collecting.maxTraces || this.#waitingBytes >= MAX_COLLECTED_BYTES)
      this.complete();
  }

  /** Completes the collection: the client gets the traces received so far. */
  complete(): void {
    if (this.#isComplete) return;
    this.#isComplete = true;
    clearTimeout(this.#timer);
    this.#events.completed();
    this.#wake?.();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Uint8Array>> {
    while (!this.#canSend()) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#wake = undefined;
    }
    const first = this.#isOver ? undefined : this.#waiting.shift();
    if (first === undefined) return this.return();
    const { worker, bytes } = first;
    if (this.#collecting === undefined) this.#budget.release(worker, bytes.length);
    return { done: false, value: bytes };
  }

  /** Called when the client has disconnected or has received everything. */
  async return(): Promise<IteratorResult<Uint8Array>> {
    if (!this.#isOver) {
      this.#isOver = true;
      this.#waiting = [];
      this.complete();
      this.#events.ended();
      this.#wake?.();
    }
    return { done: true, value: undefined };
  }

  #canSend(): boolean {
    return this.#isComplete || (this.#collecting === undefined && this.#waiting.length > 0);
  }
}
