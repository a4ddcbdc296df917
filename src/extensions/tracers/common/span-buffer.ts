// Collects encoded spans of a tracer and passes them to its exporter in batches. Its memory is bounded: spans are dropped while the
// collector does not accept earlier ones.

import { getLogger, messageOf, OccasionalLog, Timer, type Timers } from '../../sdk.js';

/** Bytes of collected spans, beyond which further ones are dropped. */
const MAX_BYTES = 4 * 1024 * 1024;
/** Exports without an answer, and their bytes, beyond which spans stay in the buffer. */
const MAX_EXPORTS = 16;
const MAX_EXPORTED_BYTES = 8 * 1024 * 1024;

const logger = getLogger('tracing');

export interface SpanBufferEvents {
  /**
   * Sends a batch. `done` must be called once: with '', or with the reason why the collector has not accepted it; but not if this
   * throws, for example because there is no room for the request.
   */
  export(spans: readonly Uint8Array[], done: (failure: string) => void): void;
  /** Called when spans were passed to export(). */
  sent(spans: number): void;
  /** Called when spans are lost: the buffer was full or export() has thrown, or (`wasExported`) the collector has not accepted them. */
  dropped(spans: number, wasExported: boolean): void;
  timerFlushed(): void;
}

export interface SpanBufferOptions {
  /** The collector's name in the log. */
  readonly collector: string;
  /** The number of spans at which a batch is sent at once. */
  readonly minSpans: { readonly value: number };
  /** The time after which a smaller batch is sent. */
  readonly intervalMs: { readonly value: number };
  readonly maxSpans: number;
}

export class SpanBuffer {
  readonly #options: SpanBufferOptions;
  readonly #events: SpanBufferEvents;
  readonly #timers: Timers;
  readonly #timer = new Timer<SpanBuffer>(this, (buffer) => buffer.#onTimer());
  readonly #log = new OccasionalLog((text) => logger.warning(text));
  #isTimed = false;
  #isClosed = false;
  #willFlush = false;
  #spans: Uint8Array[] = [];
  #bytes = 0;
  #exports = 0;
  #exportedBytes = 0;

  constructor(timers: Timers, options: SpanBufferOptions, events: SpanBufferEvents) {
    this.#timers = timers;
    this.#options = options;
    this.#events = events;
  }

  /**
   * Adds an encoded span. A batch that is large enough is sent after the current turn. If the buffer is full, drops it and sends the others, as
   * Envoy does.
   */
  add(span: Uint8Array): void {
    const { maxSpans, minSpans } = this.#options;
    if (this.#spans.length >= maxSpans || this.#bytes + span.length > MAX_BYTES) {
      this.#events.dropped(1, false);
      return this.#flush();
    }
    this.#spans.push(span);
    this.#bytes += span.length;
    const isBatch = this.#spans.length >= minSpans.value;
    // With a full batch, the other spans of this turn would be dropped.
    if (this.#isClosed || (isBatch && this.#spans.length >= maxSpans)) this.#flush();
    else if (isBatch) this.#flushAfterTurn();
    else this.#flushSoon();
  }

  /** Sends the rest. Spans that are added later are sent at once. */
  close(): void {
    this.#isClosed = true;
    this.#flush();
    this.#timers.cancel(this.#timer);
    this.#isTimed = false;
  }

  /** One export takes the spans of all requests that end in one turn. */
  #flushAfterTurn(): void {
    if (this.#willFlush) return;
    this.#willFlush = true;
    queueMicrotask(() => {
      this.#willFlush = false;
      this.#flush();
      if (this.#spans.length > 0) this.#flushSoon();
    });
  }

  #flushSoon(): void {
    if (this.#isTimed || this.#isClosed) return;
    this.#isTimed = true;
    this.#timers.reschedule(this.#timer, Math.max(1, this.#options.intervalMs.value));
  }

  #onTimer(): void {
    this.#isTimed = false;
    this.#events.timerFlushed();
    this.#flush();
    if (this.#spans.length > 0) this.#flushSoon();
  }

  #flush(): void {
    if (this.#spans.length === 0) return;
    if (this.#exports >= MAX_EXPORTS || this.#exportedBytes >= MAX_EXPORTED_BYTES) return;
    const spans = this.#spans;
    const bytes = this.#bytes;
    this.#spans = [];
    this.#bytes = 0;
    this.#exports++;
    this.#exportedBytes += bytes;
    this.#events.sent(spans.length);
    try {
      this.#events.export(spans, (failure) => this.#exported(spans.length, bytes, failure, true));
    } catch (error) {
      this.#exported(spans.length, bytes, messageOf(error), false);
    }
  }

  #exported(spans: number, bytes: number, failure: string, wasExported: boolean): void {
    this.#exports--;
    this.#exportedBytes -= bytes;
    if (failure !== '') {
      this.#events.dropped(spans, wasExported);
      this.#log.log(`${this.#options.collector} accepts no spans: ${failure}; they are lost`);
    }
    // No timer sends what has waited for this export.
    if (this.#isClosed) this.#flush();
  }
}
