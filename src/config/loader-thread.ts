// The inside of the thread that loads a configuration.

import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import { messageOf } from '../common/errors.js';
import { type Extension, ExtensionCatalog } from './extension.js';
import { type LoadResult, loadConfiguration } from './load.js';
import { refusal, type ThreadOptions } from './load-in-thread.js';

/** The body of the thread: loads what it was asked for, and answers. */
export function runLoaderThread(extensions: readonly Extension[]): void {
  if (isMainThread || !parentPort) throw new Error('runLoaderThread runs in a thread that loadInThread starts');
  const options = workerData as ThreadOptions;
  parentPort.postMessage(answer(options, extensions));
}

function answer(options: ThreadOptions, extensions: readonly Extension[]): LoadResult {
  try {
    return loadConfiguration(options, new ExtensionCatalog(extensions, options.disabledExtensions));
  } catch (error) {
    if (error instanceof RangeError) return refusal(options, `the configuration cannot be read: ${messageOf(error)}`);
    throw error;
  }
}
