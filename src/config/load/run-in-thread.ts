// Runs a task in a thread that posts one result and ends.

import { type ResourceLimits, Worker } from 'node:worker_threads';
import { leaveRemovedDirectory } from '../../common/files/working-directory.js';

export interface ThreadTask<R> {
  /** File of the thread, which reads workerData and posts one message. */
  readonly entry: URL;
  /** Name of the thread. */
  readonly name: string;
  /** The workerData of the thread. */
  readonly data: unknown;
  readonly limits: ResourceLimits;
  /** Options of Node for the thread; undefined: those of this process. */
  readonly execArgv?: readonly string[] | undefined;
  /** Returns the result for a thread that exceeds the limits. */
  tooLarge(): R;
  /** Terminates the thread when the result is no longer needed. */
  readonly signal?: AbortSignal | undefined;
}

/** Rejects if the thread fails or ends without a result. */
export function runInThread<R>({ entry, name, data, limits, execArgv, tooLarge, signal }: ThreadTask<R>): Promise<R> {
  leaveRemovedDirectory();
  return new Promise((resolve, reject) => {
    const thread = new Worker(entry, {
      name,
      workerData: data,
      resourceLimits: limits,
      ...(execArgv && { execArgv: [...execArgv] }),
    });
    thread.once('message', resolve);
    thread.once('error', (error: Error & { code?: string }) => {
      if (error.code === 'ERR_WORKER_OUT_OF_MEMORY') resolve(tooLarge());
      else reject(error);
    });
    thread.once('exit', (code) => reject(new Error(`the thread ${name} exited with code ${code} and no result`)));
    signal?.addEventListener('abort', () => void thread.terminate());
    if (signal?.aborted) void thread.terminate();
  });
}
