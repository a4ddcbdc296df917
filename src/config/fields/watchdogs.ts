// The watchdogs of a bootstrap.

import { durationMs } from '../../common/time/duration.js';
import type { Bootstrap, Watchdogs } from '../generated/api.js';

/** Returns the watchdogs by kind of thread. The deprecated field `watchdog` applies to all threads. */
export function watchdogsOf({ watchdog, watchdogs }: Bootstrap): Watchdogs | undefined {
  return watchdog === undefined ? watchdogs : { main_thread_watchdog: watchdog, worker_watchdog: watchdog };
}

/** The default with scripts, which may block a worker forever. */
const KILL_MS_WITH_SCRIPTS = 10_000;

/** Returns the time after which a blocked worker is replaced; undefined: it is not. */
export function workerKillMs(bootstrap: Bootstrap, hasScripts: boolean): number | undefined {
  const given = watchdogsOf(bootstrap)?.worker_watchdog?.kill_timeout;
  const killMs = given === undefined ? (hasScripts ? KILL_MS_WITH_SCRIPTS : 0) : durationMs(given);
  return killMs > 0 ? killMs : undefined;
}
