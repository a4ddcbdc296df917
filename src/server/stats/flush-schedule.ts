// Decides when stats are flushed to the sinks: at each interval, or only on a request to the admin interface.

import { durationMs } from '../../common/time/duration.js';
import { inTurns } from '../../common/time/next-turn.js';
import { SharedRun } from '../../common/time/shared-run.js';
import { atMostMs } from '../../common/time/within-ms.js';
import type { Bootstrap } from '../../config/generated/api.js';
import type { PrimaryContext } from '../../extensions/factories.js';
import { monotonicMs } from '../../io/time/timer-driver.js';
import { internalError } from '../../log/internal-errors.js';
import type { Primary } from '../primary.js';
import { StatsSinks } from './stats-sinks.js';

export interface FlushContext {
  /** Updates the gauges. */
  update(): Promise<void>;
  /** Returns whether the workers have reported all their histograms. */
  mergesHistograms(): boolean;
  /** Called when a flush is complete. */
  flushed(): void;
  /** Called at every interval, with or without a flush, to reclaim the memory of stats. */
  reclaimMemory(): void;
}

const DEFAULT_FLUSH_MS = 5000;
/** Limit for the last flush. */
const LAST_FLUSH_MS = 3000;

export class FlushSchedule {
  readonly #primary: Primary;
  readonly #context: FlushContext;
  readonly #config: Pick<Bootstrap, 'stats_flush_interval' | 'stats_flush_on_admin' | 'stats_sinks'>;
  readonly #flush = new SharedRun(() => this.#flushOnce());
  #sinks = new StatsSinks([], 0);
  #timer: NodeJS.Timeout | undefined;

  constructor(
    primary: Primary,
    config: Pick<Bootstrap, 'stats_flush_interval' | 'stats_flush_on_admin' | 'stats_sinks'>,
    context: FlushContext,
  ) {
    this.#primary = primary;
    this.#config = config;
    this.#context = context;
  }

  /** stats_flush_on_admin: stats are flushed only on a request to the admin interface. */
  get isOnAdmin(): boolean {
    return this.#config.stats_flush_on_admin === true;
  }

  get sinks(): StatsSinks {
    return this.#sinks;
  }

  /** Rejects when a sink cannot be created. */
  async createSinks(context: Omit<PrimaryContext, 'flushIntervalMs'>): Promise<void> {
    const { stats_sinks: configs = [] } = this.#config;
    const { epoch, extensions } = this.#primary;
    const whole = { ...context, flushIntervalMs: this.#intervalMs };
    this.#sinks = await StatsSinks.create(configs, extensions, whole, monotonicMs() - epoch.countedSinceMs);
  }

  start(): void {
    this.#timer = setInterval(() => this.#intervalOver(), this.#intervalMs);
  }

  /** Ends an interval of histograms. Resolves when all of them are merged and flushed. */
  run(): Promise<void> {
    return this.#flush.run();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Called after stop(). Flushes the counts since the last interval to the sinks, and closes them. */
  async finish(): Promise<void> {
    const isDue = this.#timer !== undefined && !this.isOnAdmin && !this.#sinks.isEmpty && this.#feedsSinks;
    if (isDue) await atMostMs(this.#runOrReport(), LAST_FLUSH_MS);
    await this.#sinks.close();
  }

  /** Whether this process flushes to its sinks; after a take-over only the child process does. */
  get #feedsSinks(): boolean {
    return !this.#primary.takeOver.isDone;
  }

  get #intervalMs(): number {
    const { stats_flush_interval: interval } = this.#config;
    return durationMs(interval, DEFAULT_FLUSH_MS);
  }

  /** Works in steps, between which the primary serves other events. */
  async #flushOnce(): Promise<void> {
    const { store } = this.#primary;
    await this.#context.update();
    if (this.#context.mergesHistograms()) await inTurns(store.flushInSteps());
    if (this.#feedsSinks) await this.#sinks.flush(store);
    this.#context.flushed();
    this.#context.reclaimMemory();
  }

  #intervalOver(): void {
    if (this.isOnAdmin) {
      this.#primary.store.reserve();
      this.#context.reclaimMemory();
    } else if (this.#flush.isRunning) {
      this.#primary.processStats.countDroppedFlush();
    } else {
      void this.#runOrReport();
    }
  }

  #runOrReport(): Promise<void> {
    return this.run().catch((error) => internalError('a flush of the stats failed', error));
  }
}
