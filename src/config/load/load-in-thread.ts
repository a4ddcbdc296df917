// Loads a configuration in a thread that ends afterwards: schema, YAML and validation never stay in the main heap.
//
// The thread's entry file belongs to a room that may import the extensions: it calls runLoaderThread with them. This file
// imports nothing of the loader, so that whoever calls it does not load it either.

import { problemOf } from '../text/problem.js';
import { askThread } from './ask-thread.js';
import type { LoadResult } from './load.js';
import type { LoadOptions } from './load-options.js';

/** What the thread is asked to do; plain data. */
export interface ThreadOptions extends LoadOptions {
  /** `<category>/<name>` of extensions that may not be used. */
  readonly disabledExtensions?: readonly string[];
}

/** Heap of the loading thread: a file that needs more is refused instead of taking the process down. */
const MAX_HEAP_MB = 1024;

/** Nearly all that is made while a text is read lives on: rarer collections of the young save an eighth of the CPU time. */
const YOUNG_HEAP_MB = 96;

/**
 * Loads in a thread of its own.
 * @param entry file of the thread; it calls runLoaderThread
 * @param signal ends it, which rejects
 */
export function loadInThread(entry: URL, options: ThreadOptions, signal?: AbortSignal): Promise<LoadResult> {
  return askThread({
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

/** A result that refuses the whole configuration. */
export function refusal(options: ThreadOptions, message: string): LoadResult {
  return { ok: false, warnings: [], errors: [problemOf(options.path ?? '--config-yaml', message)] };
}
