// Counts how often a thread's event loop has stood still: main_thread.watchdog_miss, workers.watchdog_mega_miss and the like.
//
// Every worker notes the time in shared memory when a timer of its fires; the primary looks at those times, and at how late its
// own timer is. Timers fire twice in the shortest time that counts.

import { durationMs } from '../../common/time/duration.js';
import { LONGEST_TIMER_MS } from '../../common/time/longest-timer.js';
import type { Watchdog as WatchdogConfig, Watchdogs } from '../../config/generated/api.js';
import { monotonicMs } from '../../io/time/timer-driver.js';
import { WatchdogStats } from '../../stats/layouts/server.js';
import type { StatsStore } from '../../stats/store.js';
import type { Scope } from '../../stats/thread-stats.js';
import type { HeartbeatStart } from '../../worker/messages/heartbeat.js';

/** How long a thread may be silent. */
export interface WatchdogLimits {
  readonly missMs: number;
  readonly megaMissMs: number;
}

export class Watchdog {
  readonly heartbeat: HeartbeatStart;
  readonly #beats: Float64Array;
  readonly #main: SilenceCounter;
  readonly #workers: readonly SilenceCounter[];
  readonly #mainEveryMs: number;
  #timer: NodeJS.Timeout | undefined;
  #lookedMs = 0;

  constructor(store: StatsStore, workers: number, config: Watchdogs | undefined) {
    const main = watchdogLimits(config?.main_thread_watchdog);
    const worker = watchdogLimits(config?.worker_watchdog);
    this.heartbeat = {
      beats: new SharedArrayBuffer(Math.max(workers, 1) * Float64Array.BYTES_PER_ELEMENT),
      everyMs: halfOf(worker),
    };
    this.#beats = new Float64Array(this.heartbeat.beats);
    this.#mainEveryMs = Math.min(halfOf(main), halfOf(worker));
    const scope = (prefix: string) => store.scope(store.addScope(prefix, WatchdogStats));
    this.#main = new SilenceCounter(main, [scope('main_thread.'), scope('server.main_thread.')]);
    const all = scope('workers.');
    this.#workers = Array.from(
      { length: workers },
      (_, index) => new SilenceCounter(worker, [all, scope(`server.worker_${index}.`)]),
    );
  }

  start(): void {
    this.#lookedMs = monotonicMs();
    this.#timer = setInterval(() => this.#look(), this.#mainEveryMs);
    this.#timer.unref();
  }

  /** The worker has died: it is silent for another reason. */
  forget(worker: number): void {
    this.#beats[worker] = 0;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const now = monotonicMs();
    this.#main.look(this.#lookedMs, now);
    this.#lookedMs = now;
    this.#workers.forEach((worker, index) => {
      const beat = this.#beats[index]!;
      if (beat !== 0) worker.look(beat, now);
    });
  }
}

/** Counts a silence once for each limit that it reaches. */
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

  /** The thread was last heard of at `beatMs`. */
  look(beatMs: number, nowMs: number): void {
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

/** How often to look, at most as long as a timer can be. */
function halfOf({ missMs, megaMissMs }: WatchdogLimits): number {
  return Math.max(1, Math.min(Math.floor(Math.min(missMs, megaMissMs) / 2), LONGEST_TIMER_MS));
}
