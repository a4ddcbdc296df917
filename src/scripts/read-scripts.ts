// Reads modules in a thread that ends afterwards. This file does not import what the thread loads.

import { messageOf } from '../common/errors/errors.js';
import { programFile } from '../common/package/package-root.js';
import { runInThread } from '../config/load/run-in-thread.js';
import type { ReadScript, ScriptTask } from './reading/task.js';
import { SCRIPT_THREAD_OPTIONS } from './thread-options.js';

/** Longer is a module whose top level does not end. */
const MAX_MS = 15_000;
const MAX_HEAP_MB = 512;

/** Resolves with one result for each source, in order. Does not reject. */
export async function readScripts(task: ScriptTask): Promise<readonly ReadScript[]> {
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
    return refuse(signal.aborted ? `loading did not end within ${MAX_MS / 1000} s` : messageOf(error));
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
