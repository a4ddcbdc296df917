// Repeats a question while the page is looked at, more slowly where answers take long.

import { say } from './server.js';

/** What is between two answers is at least so many times as long as an answer took: a large server is not kept busy. */
const REST_FACTOR = 10;

/**
 * Calls `task` now and then every `seconds()`, one call at a time, not while the page is hidden. A failure is said on the page
 * until the task works again. The function that it returns calls it at once.
 */
export function poll(task: () => Promise<void>, seconds: () => number): () => void {
  let timer: number | undefined;
  let isBusy = false;
  let isAskedAgain = false;
  let hasFailed = false;

  async function run(): Promise<void> {
    if (isBusy) {
      isAskedAgain = true;
      return;
    }
    window.clearTimeout(timer);
    if (document.hidden) return;
    isBusy = true;
    isAskedAgain = false;
    const begun = performance.now();
    try {
      await task();
      if (hasFailed) say('');
      hasFailed = false;
    } catch (error) {
      hasFailed = true;
      say(error instanceof Error ? error.message : String(error));
    }
    isBusy = false;
    const took = performance.now() - begun;
    timer = window.setTimeout(run, isAskedAgain ? 0 : Math.max(seconds() * 1000, took * REST_FACTOR));
  }

  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) void run();
  });
  void run();
  return () => void run();
}
