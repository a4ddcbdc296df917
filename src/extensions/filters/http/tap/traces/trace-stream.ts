// The answer to an attached tap's request: traces as they come, or all at once when enough of them are there.

import { LONGEST_TIMER_MS } from '../../../../sdk.js';
import type { TraceBudget } from './trace-budget.js';

/** Of a buffered_admin sink. */
export interface Collecting {
  readonly maxTraces: number;
  /** 0: however long it takes. */
  readonly timeoutMs: number;
}

export interface TraceStreamEvents {
  /** No further traces are wanted. */
  completed(): void;
  /** Everything is sent, or the client has left. */
  ended(): void;
}

/** Traces that are collected may have so many bytes; at more the collection is complete. */
const COLLECTED_LIMIT = 64 * 1024 * 1024;

interface Waiting {
  readonly worker: number;
  readonly bytes: Uint8Array;
}

export class TraceStream implements AsyncIterableIterator<Uint8Array> {
  readonly #budget: TraceBudget;
  readonly #events: TraceStreamEvents;
  /** Undefined: traces are sent as they come. */
  readonly #collecting: Collecting | undefined;
  readonly #timer: NodeJS.Timeout | undefined;
  #waiting: Waiting[] = [];
  #waitingBytes = 0;
  /** No more traces are taken. */
  #isComplete = false;
  #isOver = false;
  #wake: (() => void) | undefined;

  constructor(budget: TraceBudget, collecting: Collecting | undefined, events: TraceStreamEvents) {
    this.#budget = budget;
    this.#collecting = collecting;
    this.#events = events;
    const timeoutMs = collecting?.timeoutMs ?? 0;
    if (timeoutMs > 0) this.#timer = setTimeout(() => this.complete(), Math.min(LONGEST_TIMER_MS, timeoutMs));
  }

  /** A trace has come from a worker. */
  put(worker: number, bytes: Uint8Array): void {
    if (this.#isComplete) return this.#budget.giveBack(worker, bytes.length);
    this.#waiting.push({ worker, bytes });
    this.#waitingBytes += bytes.length;
    if (this.#collecting === undefined) return this.#wake?.();
    // Collected traces have a limit of their own: workers may send more.
    this.#budget.giveBack(worker, bytes.length);
    if (this.#waiting.length >= this.#collecting.maxTraces || this.#waitingBytes >= COLLECTED_LIMIT) this.complete();
  }

  /** What is here is all that the client gets. */
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
    while (!this.#mayLeave()) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#wake = undefined;
    }
    const first = this.#isOver ? undefined : this.#waiting.shift();
    if (first === undefined) return this.return();
    const { worker, bytes } = first;
    if (this.#collecting === undefined) this.#budget.giveBack(worker, bytes.length);
    return { done: false, value: bytes };
  }

  /** The client has left, or has everything. */
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

  #mayLeave(): boolean {
    return this.#isComplete || (this.#collecting === undefined && this.#waiting.length > 0);
  }
}
