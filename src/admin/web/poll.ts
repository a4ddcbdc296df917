// Repeats a task while the page is visible, more slowly if it takes long.

import { showStatus } from './server.js';

/** The pause between two runs is at least this multiple of a run's duration, so that a large server is not kept busy. */
const PAUSE_FACTOR = 10;

/**
 * Calls `task` now and then every `seconds()`, one call at a time, and not while the page is hidden. Shows a failure on the
 * page until the task succeeds again. Returns a function that calls the task immediately.
 */
export function poll(task: () => Promise<void>, seconds: () => number): () => void {
  let timer: number | undefined;
  let isBusy = false;
  let isRequestedAgain = false;
  let hasFailed = false;

  async function run(): Promise<void> {
    if (isBusy) {
      isRequestedAgain = true;
      return;
    }
    window.clearTimeout(timer);
    if (document.hidden) return;
    isBusy = true;
    isRequestedAgain = false;
    const begun = performance.now();
    try {
      await task();
      if (hasFailed) showStatus('');
      hasFailed = false;
    } catch (error) {
      hasFailed = true;
      showStatus(error instanceof Error ? error.message : String(error));
    }
    isBusy = false;
    const took = performance.now() - begun;
    timer = window.setTimeout(run, isRequestedAgain ? 0 : Math.max(seconds() * 1000, took * PAUSE_FACTOR));
  }

  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) void run();
  });
  void run();
  return () => void run();
}
