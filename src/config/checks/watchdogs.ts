// Watchdogs: times in which a thread can show that it runs.

import { durationMs } from '../../common/duration.js';
import type { Watchdogs } from '../generated/api.js';
import type { Problems } from '../text/problems.js';

const WATCHDOGS = ['main_thread_watchdog', 'worker_watchdog'] as const;
const TIMEOUTS = ['miss_timeout', 'megamiss_timeout'] as const;

export function checkWatchdogs(watchdogs: Watchdogs | undefined, problems: Problems): void {
  for (const watchdog of WATCHDOGS) {
    for (const field of TIMEOUTS) {
      const timeout = watchdogs?.[watchdog]?.[field];
      if (timeout === undefined || durationMs(timeout) > 0) continue;
      const why = 'it must be above 0s: without any time each look would count as a miss, and 0 turns nothing off';
      problems.error(['watchdogs', watchdog, field], why);
    }
  }
}
