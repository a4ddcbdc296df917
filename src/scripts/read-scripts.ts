// Reads modules in a thread that ends afterwards. This file does not import what the thread loads.

import { isThreadShortage, messageOf } from '../common/errors/errors.js';
import { isDescriptorShortage } from '../common/errors/shortages.js';
import { programFile } from '../common/package/package-root.js';
import { runInThread } from '../config/load/run-in-thread.js';
import type { ScriptImage, ScriptUse } from './image.js';
import type { ReadScript, ScriptTask } from './reading/task.js';
import { SCRIPT_THREAD_OPTIONS } from './thread-options.js';

/** Longer is a module whose top level does not end. */
const MAX_MS = 15_000;
const MAX_HEAP_MB = 512;

/** Resolves with one result for each source, in order. Does not reject. */
export async function readScripts(task: ScriptTask): Promise<readonly ReadScript[]> {
  try {
    return await runTask(task);
  } catch (error) {
    return task.sources.map(({ name }) => refusal(name, messageOf(error)));
  }
}

/**
 * Checks configurations with versions that were read before. Resolves with one result for each version, in order; with undefined if
 * no thread can be started now.
 */
export async function checkScripts(
  images: readonly ScriptImage[],
  uses: readonly ScriptUse[],
): Promise<readonly ReadScript[] | undefined> {
  try {
    return await runTask({ sources: images, uses });
  } catch (error) {
    if (isThreadShortage(error) || isDescriptorShortage(error)) return undefined;
    return images.map(({ name }) => refusal(name, messageOf(error)));
  }
}

/** Rejects if the thread could not be started, or has failed. */
async function runTask(task: ScriptTask): Promise<readonly ReadScript[]> {
  const refuse = (why: string) => task.sources.map(({ name }) => refusal(name, why));
  const signal = AbortSignal.timeout(MAX_MS);
  try {
    return await runInThread<readonly ReadScript[]>({
      entry: programFile('scripts/reading/thread.js'),
      name: 'script-reader',
      data: task,
      limits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
      execArgv: SCRIPT_THREAD_OPTIONS,
      tooLarge: () => refuse(`loading needs more than ${MAX_HEAP_MB} MB of memory`),
      signal,
    });
  } catch (error) {
    if (!signal.aborted) throw error;
    return refuse(`loading did not end within ${MAX_MS / 1000} s`);
  }
}

function refusal(name: string, why: string): ReadScript {
  return {
    name,
    image: undefined,
    mistakes: [{ path: '', message: `the script '${name}' cannot be used: ${why}` }],
    identities: {},
  };
}
