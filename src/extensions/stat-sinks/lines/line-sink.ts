// A sink that writes one line a value: walks a flush and gives the lines to whatever takes them to the server.
//
// Counters go out as deltas (`|c`), gauges as values (`|g`), histograms as samples: of the interval, in milliseconds
// (`|ms`) whatever their unit, as statsd knows no other; fractions of percent histograms as `|h`. Texts have no form here.

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

/** A histogram makes up to a hundred lines, and more. */
const HISTOGRAMS_PER_STEP = 1;

export interface LineWriter {
  /** A flush begins. */
  begin(): void;
  /** One line, without its end. Never waits: what cannot be sent is dropped, and said in the log. */
  line(text: string): void;
  /** What to wait for before there is room for further lines; undefined when there is. Resolves soon, whatever the server does. */
  room(): Promise<void> | undefined;
  /** The flush is over: what was held back goes out. */
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
