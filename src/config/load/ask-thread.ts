// One question to a thread that answers it and ends.

import { type ResourceLimits, Worker } from 'node:worker_threads';
import { leaveRemovedDirectory } from '../../common/files/working-directory.js';

export interface ThreadQuestion<A> {
  /** File of the thread: it reads workerData and posts one message. */
  readonly entry: URL;
  /** Of the thread. */
  readonly name: string;
  /** workerData */
  readonly data: unknown;
  readonly limits: ResourceLimits;
  /** The answer when they are not enough: the process goes on. */
  tooLarge(): A;
  /** Ends the thread when nobody wants the answer any more. */
  readonly signal?: AbortSignal | undefined;
}

/** Rejects when the thread fails, or ends without an answer. */
export function askThread<A>({ entry, name, data, limits, tooLarge, signal }: ThreadQuestion<A>): Promise<A> {
  leaveRemovedDirectory();
  return new Promise((resolve, reject) => {
    const thread = new Worker(entry, { name, workerData: data, resourceLimits: limits });
    thread.once('message', resolve);
    thread.once('error', (error: Error & { code?: string }) => {
      if (error.code === 'ERR_WORKER_OUT_OF_MEMORY') resolve(tooLarge());
      else reject(error);
    });
    thread.once('exit', (code) => reject(new Error(`the thread ${name} ended with ${code} and no answer`)));
    signal?.addEventListener('abort', () => void thread.terminate());
    if (signal?.aborted) void thread.terminate();
  });
}
