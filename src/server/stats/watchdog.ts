// Counts how often the event loop of a thread was blocked: main_thread.watchdog_miss, workers.watchdog_mega_miss and others.
//
// A timer of every worker writes the time to shared memory. The primary compares those times, and the lateness of its own timer,
// with the limits. The timers fire twice within the shortest limit.

import { getHeapStatistics } from 'node:v8';
import { durationMs } from '../../common/time/duration.js';
import { MAX_TIMER_MS } from '../../common/time/max-timer.js';
import type { Watchdog as WatchdogConfig, Watchdogs } from '../../config/generated/api.js';
import { monotonicMs } from '../../io/time/timer-driver.js';
import { WatchdogStats } from '../../stats/layouts/server.js';
import type { StatsStore } from '../../stats/store.js';
import type { Scope } from '../../stats/thread-stats.js';
import type { HeartbeatStart } from '../../worker/messages/heartbeat.js';

/** Checks in which a worker is silent, before the memory of the process is measured. */
const SILENT_CHECKS = 2;
/** The part of a heap's limit by which the process may grow meanwhile. */
const MAX_GROWTH = 0.5;

/** The silences of a thread that count. */
export interface WatchdogLimits {
  readonly missMs: number;
  readonly megaMissMs: number;
}

/** What happens to workers that are blocked for too long. */
export interface StuckWorkers {
  readonly killMs: number;
  /** Called when a worker is silent for `killMs`. */
  replace(worker: number): void;
  /** Called when a worker is silent while the process takes memory as if that worker filled its heap. */
  replaceGrowing(worker: number): void;
}

export class Watchdog {
  readonly heartbeat: HeartbeatStart;
  readonly #beats: Float64Array;
  readonly #main: SilenceCounter;
  readonly #workers: readonly SilenceCounter[];
  readonly #mainEveryMs: number;
  #stuck: StuckDetector | undefined;
  #timer: NodeJS.Timeout | undefined;
  #checkedMs = 0;

  /** `stuck` undefined: silence is only counted. */
  constructor(store: StatsStore, workers: number, config: Watchdogs | undefined, stuck?: StuckWorkers) {
    const main = watchdogLimits(config?.main_thread_watchdog);
    const worker = watchdogLimits(config?.worker_watchdog);
    this.heartbeat = {
      beats: new SharedArrayBuffer(Math.max(workers, 1) * Float64Array.BYTES_PER_ELEMENT),
      everyMs: halfOf(worker),
    };
    this.#beats = new Float64Array(this.heartbeat.beats);
    this.#mainEveryMs = Math.min(halfOf(main), halfOf(worker), ...(stuck ? [Math.ceil(stuck.killMs / 4)] : []));
    if (stuck !== undefined) {
      const checks = Math.ceil(stuck.killMs / this.#mainEveryMs);
      this.#stuck = new StuckDetector(workers, checks, stuck);
    }
    const scope = (prefix: string) => store.scope(store.addScope(prefix, WatchdogStats));
    this.#main = new SilenceCounter(main, [scope('main_thread.'), scope('server.main_thread.')]);
    const all = scope('workers.');
    this.#workers = Array.from(
      { length: workers },
      (_, index) => new SilenceCounter(worker, [all, scope(`server.worker_${index}.`)]),
    );
  }

  /** Replaces stuck workers from now on, if none are replaced yet. */
  guard(stuck: StuckWorkers): void {
    // A worker that is well writes the time at least once in between.
    const checks = Math.ceil(Math.max(stuck.killMs, 3 * this.heartbeat.everyMs) / this.#mainEveryMs);
    this.#stuck ??= new StuckDetector(this.#workers.length, checks, stuck);
  }

  start(): void {
    this.#checkedMs = monotonicMs();
    this.#timer = setInterval(() => this.#check(), this.#mainEveryMs);
    this.#timer.unref();
  }

  /** Called when the worker has died: its silence must not count. */
  forget(worker: number): void {
    this.#beats[worker] = 0;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #check(): void {
    const now = monotonicMs();
    this.#main.check(this.#checkedMs, now);
    this.#checkedMs = now;
    this.#workers.forEach((worker, index) => {
      const beat = this.#beats[index]!;
      if (beat === 0) return;
      worker.check(beat, now);
      this.#stuck?.check(index, beat);
    });
  }
}

/**
 * Detects workers that are silent for a number of checks. Time would not do: after a stop of the whole process, all workers have
 * been silent for long.
 */
class StuckDetector {
  readonly #checks: number;
  readonly #stuck: StuckWorkers;
  readonly #beats: Float64Array;
  readonly #silent: Int32Array;
  /** Memory of the process when the silence began. */
  readonly #memory: Float64Array;
  /** V8 ends the process when a heap is full and a large array is requested: a worker may not get so far. */
  readonly #maxGrowth = getHeapStatistics().heap_size_limit * MAX_GROWTH;

  constructor(workers: number, checks: number, stuck: StuckWorkers) {
    this.#checks = checks;
    this.#stuck = stuck;
    this.#beats = new Float64Array(workers);
    this.#silent = new Int32Array(workers);
    this.#memory = new Float64Array(workers);
  }

  check(worker: number, beatMs: number): void {
    const silent = beatMs === this.#beats[worker] ? this.#silent[worker]! + 1 : 0;
    this.#silent[worker] = silent;
    this.#beats[worker] = beatMs;
    if (silent === this.#checks) return this.#stuck.replace(worker);
    if (silent === SILENT_CHECKS) this.#memory[worker] = process.memoryUsage.rss();
    if (silent <= SILENT_CHECKS || silent > this.#checks) return;
    if (process.memoryUsage.rss() - this.#memory[worker]! < this.#maxGrowth) return;
    // Not twice: `checks` is not reached after this.
    this.#silent[worker] = this.#checks;
    this.#stuck.replaceGrowing(worker);
  }
}

/** Counts a silence once for each limit that it exceeds. */
export class SilenceCounter {
  readonly #limits: WatchdogLimits;
  readonly #scopes: readonly Scope[];
  #beatMs = 0;
  #isMissed = false;
  #isMegaMissed = false;

  constructor(limits: WatchdogLimits, scopes: readonly Scope[]) {
    this.#limits = limits;
    this.#scopes = scopes;
  }

  /** `beatMs`: the last sign of life of the thread. */
  check(beatMs: number, nowMs: number): void {
    if (beatMs !== this.#beatMs) this.#isMissed = this.#isMegaMissed = false;
    this.#beatMs = beatMs;
    const silentMs = nowMs - beatMs;
    if (!this.#isMissed && silentMs >= this.#limits.missMs) {
      this.#isMissed = true;
      for (const scope of this.#scopes) scope.increment(WatchdogStats.at.watchdog_miss);
    }
    if (!this.#isMegaMissed && silentMs >= this.#limits.megaMissMs) {
      this.#isMegaMissed = true;
      for (const scope of this.#scopes) scope.increment(WatchdogStats.at.watchdog_mega_miss);
    }
  }
}

function watchdogLimits(config: WatchdogConfig | undefined): WatchdogLimits {
  return {
    missMs: config?.miss_timeout === undefined ? 200 : durationMs(config.miss_timeout),
    megaMissMs: config?.megamiss_timeout === undefined ? 1000 : durationMs(config.megamiss_timeout),
  };
}

/** Returns the interval of the checks, at most the longest that a timer supports. */
function halfOf({ missMs, megaMissMs }: WatchdogLimits): number {
  return Math.max(1, Math.min(Math.floor(Math.min(missMs, megaMissMs) / 2), MAX_TIMER_MS));
}
