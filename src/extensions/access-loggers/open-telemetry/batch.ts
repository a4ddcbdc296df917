// Collects encoded records of a logger and exports them together. Its memory is bounded: records are dropped while the collector
// does not answer.

import type { OtlpExporter } from '../../messages/otlp-exporter.js';
import { getLogger, messageOf, OccasionalLog, Timer, type Timers } from '../../sdk.js';

/** Limits of exports without an answer: their number, and the bytes of a batch that waits for them. */
const MAX_EXPORTS = 8;
const MAX_HELD_BYTES = 1024 * 1024;

const logger = getLogger('grpc');

export interface BatchOptions {
  readonly flushMs: number;
  /** Bytes at which a batch is exported at once. */
  readonly maxBytes: number;
  /** Returns the request for some records. */
  encode(records: readonly Uint8Array[]): Uint8Array;
}

export interface BatchEvents {
  written(records: number): void;
  dropped(records: number): void;
}

export class RecordBatch {
  readonly #exporter: OtlpExporter;
  readonly #timers: Timers;
  readonly #options: BatchOptions;
  readonly #events: BatchEvents;
  readonly #timer = new Timer<RecordBatch>(this, (batch) => batch.#onTimer());
  readonly #log = new OccasionalLog((text) => logger.warning(text));
  #records: Uint8Array[] = [];
  #bytes = 0;
  #exports = 0;
  #isTimed = false;
  #isClosed = false;

  constructor(exporter: OtlpExporter, timers: Timers, options: BatchOptions, events: BatchEvents) {
    this.#exporter = exporter;
    this.#timers = timers;
    this.#options = options;
    this.#events = events;
  }

  add(record: Uint8Array): void {
    const { flushMs, maxBytes } = this.#options;
    if (this.#bytes >= Math.max(maxBytes, MAX_HELD_BYTES)) return this.#events.dropped(1);
    this.#records.push(record);
    this.#bytes += record.length;
    if (this.#bytes >= maxBytes || this.#isClosed) return this.#flush();
    if (this.#isTimed) return;
    this.#isTimed = true;
    this.#timers.reschedule(this.#timer, flushMs);
  }

  /** Exports the rest. Records that are added later are exported at once. */
  close(): void {
    this.#isClosed = true;
    this.#timers.cancel(this.#timer);
    this.#flush();
    this.#exporter.close();
  }

  #onTimer(): void {
    this.#isTimed = false;
    this.#flush();
    if (this.#records.length === 0) return;
    this.#isTimed = true;
    this.#timers.reschedule(this.#timer, this.#options.flushMs);
  }

  #flush(): void {
    const count = this.#records.length;
    if (count === 0 || this.#exports >= MAX_EXPORTS) return;
    const request = this.#options.encode(this.#records);
    this.#records = [];
    this.#bytes = 0;
    this.#exports++;
    try {
      this.#exporter.export(request, (failure) => this.#exported(count, failure));
    } catch (error) {
      // For example, there is no room for the request.
      this.#exported(count, messageOf(error));
    }
  }

  #exported(count: number, failure: string): void {
    this.#exports--;
    if (failure === '') this.#events.written(count);
    else {
      this.#events.dropped(count);
      this.#log.log(`the OpenTelemetry collector ${this.#exporter.place} accepts no log records: ${failure}`);
    }
    // No timer exports what has waited for this export.
    if (this.#isClosed || this.#bytes >= this.#options.maxBytes) this.#flush();
  }
}
