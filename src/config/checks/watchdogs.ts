// Watchdogs: their timeouts.

import { durationMs } from '../../common/time/duration.js';
import type { Bootstrap, Watchdog } from '../generated/api.js';
import type { Path } from '../text/path.js';
import type { Problems } from '../text/problems.js';

const WATCHDOGS = ['main_thread_watchdog', 'worker_watchdog'] as const;
const TIMEOUTS = ['miss_timeout', 'megamiss_timeout'] as const;

export function checkWatchdogs({ watchdog, watchdogs }: Bootstrap, problems: Problems): void {
  if (watchdog && watchdogs) problems.error(['watchdog'], 'only one of watchdog and watchdogs can be set', 'key');
  checkTimeouts(watchdog, ['watchdog'], problems);
  for (const name of WATCHDOGS) checkTimeouts(watchdogs?.[name], ['watchdogs', name], problems);
  if (watchdogs?.main_thread_watchdog?.kill_timeout !== undefined) {
    const why = 'the main thread cannot replace itself; blocked workers are replaced with worker_watchdog';
    problems.error(['watchdogs', 'main_thread_watchdog', 'kill_timeout'], why);
  }
}

function checkTimeouts(watchdog: Watchdog | undefined, path: Path, problems: Problems): void {
  for (const field of TIMEOUTS) {
    const timeout = watchdog?.[field];
    if (timeout === undefined || durationMs(timeout) > 0) continue;
    const why = 'it must be above 0s: with 0s every check would count as a miss, and 0s does not disable the watchdog';
    problems.error([...path, field], why);
  }
}
