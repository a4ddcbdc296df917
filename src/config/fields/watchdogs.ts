// The watchdogs of a bootstrap.

import type { Bootstrap, Watchdogs } from '../generated/api.js';

/** Returns the watchdogs by kind of thread. The deprecated field `watchdog` applies to all threads. */
export function watchdogsOf({ watchdog, watchdogs }: Bootstrap): Watchdogs | undefined {
  return watchdog === undefined ? watchdogs : { main_thread_watchdog: watchdog, worker_watchdog: watchdog };
}
