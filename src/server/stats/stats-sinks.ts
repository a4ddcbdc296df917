// The sinks of stats_sinks: each flush is given to all of them, a few milliseconds at a time, whatever becomes of one.

import { setTimeout as delay } from 'node:timers/promises';
import { withPlace } from '../../common/errors/defects.js';
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

/** How long the flush may keep the thread. */
const SLICE_MS = 3;
/** How long sinks may take to send what is on its way when the server ends. */
const CLOSE_MS = 1000;
/** A sink that takes longer to be created keeps the server waiting, and the log says so. */
const LATE_MS = 5000;
/** How often its creation is tried again for want of descriptors, and how much later each time. */
const RETRIES = 10;
const RETRY_MS = 500;

interface NamedSink {
  readonly name: string;
  readonly sink: StatsSink;
  /** The last flush failed: said once. */
  failure: string;
}

export class StatsSinks {
  readonly #sinks: readonly NamedSink[];
  readonly #latches = new CounterLatches();
  readonly #credits: CounterCredit[] = [];
  readonly #startMs = Date.now();
  readonly #countedSinceMs: number;
  #previousMs = this.#startMs;

  /** `countedForMs`: how long counters have counted already. */
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
        return { name, sink: await withDescriptors(create) };
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

  /** Gives the sinks what was counted since the last call; the histograms of the interval have been merged. */
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

  /**
   * How much of what a counter has counted since the process began the sinks have been given; undefined without sinks, when
   * nobody waits for any of it.
   */
  given(section: Section, index: number): number | undefined {
    return this.isEmpty ? undefined : this.#latches.value(section, index);
  }

  /** So much of the counter of that full name was given to the sinks of a parent process: the next flush leaves it out. */
  credit(name: string, amount: number): void {
    if (!this.isEmpty) this.#credits.push({ name, amount });
  }

  /** The counter of that full name has been given to sinks of a child process up to `total`: the next flush leaves that out. */
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
      failure = withPlace(error);
    }
    if (failure === sink.failure) return;
    sink.failure = failure;
    if (failure === '') logger.info(`stats sink '${shownName(sink.name)}' works again`);
    else logger.error(`stats sink '${shownName(sink.name)}' has lost a part of a flush: ${failure}`);
  }
}

/** Tries again, some times, where descriptors were short: they may be for a moment only, and the sink would be missing for good. */
async function withDescriptors<T>(create: () => Promise<T>): Promise<T> {
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
    logger.error(`stats sink '${shownName(name)}' could not be closed: ${withPlace(error)}`);
  }
}

/** Runs through the steps, with a turn of the loop for others whenever a slice is over. */
async function inSlices(steps: Iterable<FlushStep>): Promise<void> {
  let begun = performance.now();
  for (const step of steps) {
    if (step !== undefined) await step;
    if (performance.now() - begun < SLICE_MS) continue;
    await new Promise((resolve) => setImmediate(resolve));
    begun = performance.now();
  }
}
