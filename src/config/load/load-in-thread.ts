// Loads a configuration in a thread that ends afterwards, so that schema, YAML and validation do not stay in the main heap.
//
// The thread's entry file belongs to a room that may import the extensions, and passes them to runLoaderThread(). This file
// imports nothing of the loader, so that callers do not load it either.

import { problemOf } from '../text/problem.js';
import type { LoadResult } from './load.js';
import type { LoadOptions } from './load-options.js';
import { runInThread } from './run-in-thread.js';

/** The task of the thread; plain data. */
export interface ThreadOptions extends LoadOptions {
  /** `<category>/<name>` of extensions that are disabled. */
  readonly disabledExtensions?: readonly string[];
}

/** Heap limit of the loading thread. A larger configuration is refused and does not crash the process. */
const MAX_HEAP_MB = 1024;

/**
 * Most objects that are created during loading survive, so that fewer young-generation collections save an eighth of the CPU
 * time.
 */
const YOUNG_HEAP_MB = 96;

/**
 * Loads in a separate thread.
 * @param entry file of the thread, which calls runLoaderThread()
 * @param signal terminates the thread, which rejects
 */
export function loadInThread(entry: URL, options: ThreadOptions, signal?: AbortSignal): Promise<LoadResult> {
  return runInThread({
    entry,
    signal,
    name: 'config-loader',
    data: options,
    limits: { maxOldGenerationSizeMb: MAX_HEAP_MB, maxYoungGenerationSizeMb: YOUNG_HEAP_MB },
    tooLarge: () => tooLarge(options),
  });
}

function tooLarge(options: ThreadOptions): LoadResult {
  return refusal(options, `the configuration needs more than ${MAX_HEAP_MB} MB of memory to load`);
}

/** Returns a result that refuses the whole configuration. */
export function refusal(options: ThreadOptions, message: string): LoadResult {
  const name = options.path ?? (options.input === undefined ? '--config-yaml' : 'standard input');
  return { ok: false, warnings: [], errors: [problemOf(name, message)] };
}
