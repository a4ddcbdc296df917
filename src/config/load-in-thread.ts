// Loads a configuration in a thread that ends afterwards: schema, YAML and validation never stay in the main heap.
//
// The thread's entry file belongs to a room that may import the extensions: it calls runLoaderThread with them. This file
// imports nothing of the loader, so that whoever calls it does not load it either.

import { Worker } from 'node:worker_threads';
import type { LoadOptions, LoadResult } from './load.js';

/** What the thread is asked to do; plain data. */
export interface ThreadOptions extends LoadOptions {
  /** `<category>/<name>` of extensions that may not be used. */
  readonly disabledExtensions?: readonly string[];
}

/** Heap of the loading thread: a file that needs more is refused instead of taking the process down. */
const MAX_HEAP_MB = 1024;

/**
 * Loads in a thread of its own.
 * @param entry file of the thread; it calls runLoaderThread
 */
export function loadInThread(entry: URL, options: ThreadOptions): Promise<LoadResult> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(entry, {
      name: 'config-loader',
      workerData: options,
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
    });
    worker.once('message', resolve);
    worker.once('error', (error: Error & { code?: string }) => {
      if (error.code === 'ERR_WORKER_OUT_OF_MEMORY') resolve(tooLarge(options));
      else reject(error);
    });
    worker.once('exit', (code) => reject(new Error(`the configuration thread ended with ${code} and no result`)));
  });
}

function tooLarge(options: ThreadOptions): LoadResult {
  return refusal(options, `the configuration needs more than ${MAX_HEAP_MB} MB of memory to load`);
}

/** A result that refuses the whole configuration. */
export function refusal(options: ThreadOptions, message: string): LoadResult {
  const source = options.path ?? '--config-yaml';
  return {
    ok: false,
    warnings: [],
    errors: [{ source, line: 0, column: 0, path: '', message, excerpt: '', caret: 0 }],
  };
}
