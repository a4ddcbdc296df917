// The sinks of stats_sinks. Each flush goes to every sink, in slices of a few milliseconds, whether or not another sink fails.

import { setTimeout as delay } from 'node:timers/promises';
import { withSourcePlace } from '../../common/errors/defects.js';
import { messageOf } from '../../common/errors/errors.js';
import { isDescriptorShortage } from '../../common/errors/shortages.js';
import { shownName } from '../../common/text/shown.js';
import { atMostMs } from '../../common/time/within-ms.js';
import type { StatsSink as StatsSinkConfig } from '../../config/generated/api.js';
import type { ExtensionFinder, PrimaryContext } from '../../extensions/factories.js';
import { getLogger } from '../../log/logger.js';
import { type CounterCredit, CounterLatches } from '../../stats/flush/counter-latches.js';
import { FlushedStats } from '../../stats/flush/flushed-stats.js';
import type { FlushStep, StatsSink } from '../../stats/flush/sink.js';
import type { Section } from '../../stats/read/section.js';
import type { StatsStore } from '../../stats/store.js';

const logger = getLogger('stats');

/** Longest time for which the flush may block the thread. */
const SLICE_MS = 3;
/** Limit for sinks to send what is in flight when the server ends. */
const CLOSE_MS = 1000;
/** A sink that takes longer to be created delays the server, which the log reports. */
const LATE_MS = 5000;
/** How often creation is retried when descriptors are short, and the pause between the attempts. */
const RETRIES = 10;
const RETRY_MS = 500;

interface NamedSink {
  readonly name: string;
  readonly sink: StatsSink;
  /** Error of the last flush, which is logged once; '' when it succeeded. */
  failure: string;
}

export class StatsSinks {
  readonly #sinks: readonly NamedSink[];
  readonly #latches = new CounterLatches();
  readonly #credits: CounterCredit[] = [];
  readonly #startMs = Date.now();
  readonly #countedSinceMs: number;
  #previousMs = this.#startMs;

  /** `countedForMs`: for how long the counters have counted already. */
  constructor(sinks: readonly { readonly name: string; readonly sink: StatsSink }[], countedForMs: number) {
    this.#sinks = sinks.map((sink) => ({ ...sink, failure: '' }));
    this.#countedSinceMs = this.#startMs - Math.round(countedForMs);
  }

  /** Rejects when a sink cannot be created. */
  static async create(
    configs: readonly StatsSinkConfig[],
    extensions: ExtensionFinder,
    context: PrimaryContext,
    countedForMs: number,
  ): Promise<StatsSinks> {
    const sinks = configs.map(async (config) => {
      const extension = extensions.statsSink(config.typed_config!);
      const name = config.name || extension.name;
      const late = setTimeout(() => {
        logger.warning(`the server waits for the stats sink '${shownName(name)}', which has not been created yet`);
      }, LATE_MS).unref();
      try {
        const create = () => extension.createOnPrimary(config.typed_config, context);
        return { name, sink: await retryForDescriptors(create) };
      } catch (error) {
        throw new Error(`stats sink '${name}' cannot be created: ${messageOf(error)}`, { cause: error });
      } finally {
        clearTimeout(late);
      }
    });
    return new StatsSinks(await Promise.all(sinks), countedForMs);
  }

  get isEmpty(): boolean {
    return this.#sinks.length === 0;
  }

  /** Flushes the counts since the last call to the sinks. The histograms of the interval must be merged already. */
  async flush(store: StatsStore): Promise<void> {
    if (this.isEmpty) return;
    const reader = store.reader();
    const { sections } = reader;
    await inSlices(this.#latches.latch(reader, sections, this.#credits.splice(0)));
    const nowMs = Date.now();
    const times = {
      countedSinceMs: this.#countedSinceMs,
      startMs: this.#startMs,
      previousMs: this.#previousMs,
      nowMs,
    };
    this.#previousMs = nowMs;
    const stats = new FlushedStats(reader, sections, this.#latches, times);
    for (const sink of this.#sinks) await this.#flushOne(sink, stats);
  }

  /** Returns how much of a counter, since the process started, was flushed to the sinks; undefined without sinks. */
  flushedAmount(section: Section, index: number): number | undefined {
    return this.isEmpty ? undefined : this.#latches.value(section, index);
  }

  /** Excludes `amount` of the counter with that full name from the next flush: the parent's sinks have received it. */
  credit(name: string, amount: number): void {
    if (!this.isEmpty) this.#credits.push({ name, amount });
  }

  /** Excludes everything up to `total` from the next flush: a child's sinks have received it. */
  creditUpTo(name: string, total: number): void {
    if (!this.isEmpty) this.#credits.push({ name, amount: total, isTotal: true });
  }

  async close(): Promise<void> {
    await atMostMs(Promise.all(this.#sinks.map((sink) => closeOne(sink))), CLOSE_MS);
  }

  async #flushOne(sink: NamedSink, stats: FlushedStats): Promise<void> {
    let failure = '';
    try {
      await inSlices(sink.sink.flush(stats));
    } catch (error) {
      failure = withSourcePlace(error);
    }
    if (failure === sink.failure) return;
    sink.failure = failure;
    if (failure === '') logger.info(`stats sink '${shownName(sink.name)}' works again`);
    else logger.error(`stats sink '${shownName(sink.name)}' has lost a part of a flush: ${failure}`);
  }
}

/** Retries a few times when descriptors are short: the shortage may pass, but a missing sink would be missing for good. */
async function retryForDescriptors<T>(create: () => Promise<T>): Promise<T> {
  for (let left = RETRIES; ; left--) {
    try {
      return await create();
    } catch (error) {
      if (left === 0 || !isDescriptorShortage(error)) throw error;
      await delay(RETRY_MS);
    }
  }
}

async function closeOne({ name, sink }: NamedSink): Promise<void> {
  try {
    await sink.close();
  } catch (error) {
    logger.error(`stats sink '${shownName(name)}' could not be closed: ${withSourcePlace(error)}`);
  }
}

/** Runs the steps, and yields to the event loop after each slice. */
async function inSlices(steps: Iterable<FlushStep>): Promise<void> {
  let begun = performance.now();
  for (const step of steps) {
    if (step !== undefined) await step;
    if (performance.now() - begun < SLICE_MS) continue;
    await new Promise((resolve) => setImmediate(resolve));
    begun = performance.now();
  }
}
