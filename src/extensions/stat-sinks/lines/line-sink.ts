// A sink that renders each value of a flush as a line, and passes the lines to a LineWriter.
//
// Counters are sent as deltas (`|c`), gauges as values (`|g`), histograms as samples of the interval: percent histograms as
// fractions (`|h`), others as milliseconds (`|ms`) whatever their unit is, since statsd has no other. Text values are not sent.

import {
  type FlushedStat,
  type FlushedStats,
  type FlushStep,
  Kind,
  PERCENT_SCALE,
  STATS_PER_STEP,
  type StatsSink,
} from '../../sdk.js';
import type { LineFormat } from './line-format.js';
import { eachSample } from './samples.js';

/** A histogram may take more than a hundred lines. */
const HISTOGRAMS_PER_STEP = 1;

/** Sends lines to a server. */
export interface LineWriter {
  /** Called when a flush begins. */
  begin(): void;
  /** Sends a line, given without line end. Never blocks: a line that cannot be sent is dropped, which is logged. */
  line(text: string): void;
  /**
   * Returns a promise to await before further lines, or undefined. It resolves within a bounded time whatever the server does.
   */
  room(): Promise<void> | undefined;
  /** Called when the flush is complete. Sends buffered lines. */
  end(): void;
  close(): void | Promise<void>;
}

export class LineSink implements StatsSink {
  readonly #format: LineFormat;
  readonly #writer: LineWriter;

  constructor(format: LineFormat, writer: LineWriter) {
    this.#format = format;
    this.#writer = writer;
  }

  *flush(stats: FlushedStats): Generator<FlushStep, void> {
    const writer = this.#writer;
    writer.begin();
    for (const _ of stats.eachValue(STATS_PER_STEP, (stat) => this.#value(stat))) yield writer.room();
    for (const _ of stats.eachHistogram(HISTOGRAMS_PER_STEP, (stat) => this.#histogram(stat))) yield writer.room();
    writer.end();
  }

  close(): void | Promise<void> {
    return this.#writer.close();
  }

  #value(stat: FlushedStat): void {
    const { head, tail } = this.#format.frame(stat);
    this.#writer.line(stat.kind === Kind.Counter ? `${head}:${stat.delta}|c${tail}` : `${head}:${stat.value}|g${tail}`);
  }

  #histogram(stat: FlushedStat): void {
    const interval = stat.histogram?.interval;
    if (interval === undefined || interval.bins.length === 0) return;
    const { head, tail } = this.#format.frame(stat);
    const isPercent = stat.unit === 'percent';
    eachSample(interval, (value, rate) => {
      const text = isPercent ? `${value / PERCENT_SCALE}|h` : `${value}|ms`;
      this.#writer.line(`${head}:${text}${rate}${tail}`);
    });
  }
}
