// What the watchdogs of a bootstrap watch.

import type { Bootstrap, Watchdogs } from '../generated/api.js';

/** Those of each kind of thread: the deprecated `watchdog` is of all. */
export function watchdogsOf({ watchdog, watchdogs }: Bootstrap): Watchdogs | undefined {
  return watchdog === undefined ? watchdogs : { main_thread_watchdog: watchdog, worker_watchdog: watchdog };
}
