// Errors of a process that may open too few files, or start too few threads.

import { print } from '../process/print.js';
import { BatonError, lacksThreads, messageOf } from './errors.js';

/** As the kernel, Node's file functions, its threads and the loader of native modules tell it. */
const FEW_DESCRIPTORS = /EMFILE|ENFILE|too many open files/i;

export function lacksDescriptors(error: unknown): boolean {
  return FEW_DESCRIPTORS.test(messageOf(error));
}

/** Whether there was no memory for a buffer. A heap that is full throws nothing: it ends the thread or the process. */
export function lacksMemory(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ERR_MEMORY_ALLOCATION_FAILED' || error.message === 'Array buffer allocation failed';
}

/** What happened, and what to do where descriptors are short. */
export function withRemedy(error: unknown): string {
  const message = messageOf(error);
  if (!lacksDescriptors(error)) return message;
  return `this process may open too few files: ${message}; raise the limit (ulimit -n, LimitNOFILE=)`;
}

/**
 * For a process that lacks these even for its own start, or parts of its installation: says so, instead of dying with a stack, and
 * ends it with status 1. Throws `error` when the reason was another one.
 */
export function endWithReason(error: unknown): never {
  const message = messageOf(error);
  if (lacksThreads(error)) print(process.stderr, `error: ${message}\n`);
  else if (lacksDescriptors(error)) print(process.stderr, `error: ${withRemedy(error)}\n`);
  else if (error instanceof BatonError && error.code === 'INSTALLATION_BROKEN')
    print(process.stderr, `error: ${error.describe()}\n`);
  else throw error;
  process.exit(1);
}
