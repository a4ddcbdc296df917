// Errors of a process that may open too few files, or start too few threads.

import { print } from '../process/print.js';
import { messageOf } from './errors.js';

/** As the kernel, Node's file functions, its threads and the loader of native modules tell it. */
const FEW_DESCRIPTORS = /EMFILE|ENFILE|too many open files/i;

export function lacksDescriptors(error: unknown): boolean {
  return FEW_DESCRIPTORS.test(messageOf(error));
}

/** What an error of a thread that was not started means: Node says nothing but EAGAIN where the system has refused it. */
export function whyNoThread(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code !== 'ERR_WORKER_INIT_FAILED' || !/EAGAIN/.test(message)) return messageOf(error);
  return 'this process may start too few threads (EAGAIN); raise the limit (ulimit -u, TasksMax=, the pids limit of a container)';
}

/**
 * For a process that lacks these even for its own start: says so, instead of dying with a stack, and ends it with status 1.
 * Throws `error` when the reason was another one.
 */
export function endIfShort(error: unknown): never {
  const message = messageOf(error);
  const ofThread = whyNoThread(error);
  if (ofThread !== message) print(process.stderr, `error: ${ofThread}\n`);
  else if (lacksDescriptors(error))
    print(
      process.stderr,
      `error: this process may open too few files: ${message}; raise the limit (ulimit -n, LimitNOFILE=)\n`,
    );
  else throw error;
  process.exit(1);
}
