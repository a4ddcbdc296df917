// The code of the thread that loads a configuration.

import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import { messageOf } from '../../common/errors/errors.js';
import { didYouMean } from '../../common/text/suggest.js';
import { type Extension, ExtensionCatalog } from '../catalog/extension.js';
import { type Problem, problemOf } from '../text/problem.js';
import type { BootstrapCheck } from './bootstrap-check.js';
import { type LoadResult, loadConfiguration } from './load.js';
import { refusal, type ThreadOptions } from './load-in-thread.js';

/** Loads the requested configuration and posts the result. */
export function runLoaderThread(extensions: readonly Extension[], checks: readonly BootstrapCheck[] = []): void {
  if (isMainThread || !parentPort) throw new Error('runLoaderThread runs in a thread that loadInThread starts');
  const options = workerData as ThreadOptions;
  parentPort.postMessage(answer(options, extensions, checks));
}

function answer(
  options: ThreadOptions,
  extensions: readonly Extension[],
  checks: readonly BootstrapCheck[],
): LoadResult {
  try {
    const catalog = new ExtensionCatalog(extensions, options.disabledExtensions);
    const result = loadConfiguration(options, catalog, checks);
    return { ...result, warnings: [...unknownDisabled(catalog), ...result.warnings] };
  } catch (error) {
    if (error instanceof RangeError) return refusal(options, `the configuration cannot be read: ${messageOf(error)}`);
    throw error;
  }
}

/**
 * Returns warnings about unknown names in --disable-extensions: a misspelt extension stays enabled, but scripts may name
 * extensions that this build lacks.
 */
function unknownDisabled(catalog: ExtensionCatalog): Problem[] {
  const known = catalog.list().map(({ category, name }) => `${category}/${name}`);
  return catalog.unknownDisabled().map((name) => {
    const what = name.includes('/') ? 'unknown extension' : 'invalid extension name';
    return problemOf('', `failed to disable ${what} '${name}'${didYouMean(name, known)}`);
  });
}
