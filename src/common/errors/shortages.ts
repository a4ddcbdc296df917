// Errors of a process that has reached its limit of descriptors, threads or memory.

import { print } from '../process/print.js';
import { BatonError, isThreadShortage, messageOf } from './errors.js';

/** Matches the texts of the kernel, of Node's file functions and threads, and of the loader of native modules. */
const DESCRIPTOR_SHORTAGE = /EMFILE|ENFILE|too many open files/i;

export function isDescriptorShortage(error: unknown): boolean {
  return DESCRIPTOR_SHORTAGE.test(messageOf(error));
}

/** Returns whether a buffer could not be allocated. A full heap throws nothing: it ends the thread or the process. */
export function isMemoryShortage(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ERR_MEMORY_ALLOCATION_FAILED' || error.message === 'Array buffer allocation failed';
}

/** Returns the message of an error, with advice when descriptors are short. */
export function withRemedy(error: unknown): string {
  const message = messageOf(error);
  if (!isDescriptorShortage(error)) return message;
  return `this process cannot open more files: ${message}; raise the limit (ulimit -n, LimitNOFILE=)`;
}

/**
 * Ends the process with status 1 and a message when it lacks descriptors, threads or parts of its installation for its own
 * start. Throws `error` if it has another reason.
 */
export function exitWithReason(error: unknown): never {
  const message = messageOf(error);
  if (isThreadShortage(error)) print(process.stderr, `error: ${message}\n`);
  else if (isDescriptorShortage(error)) print(process.stderr, `error: ${withRemedy(error)}\n`);
  else if (error instanceof BatonError && error.code === 'INSTALLATION_BROKEN')
    print(process.stderr, `error: ${error.describe()}\n`);
  else throw error;
  process.exit(1);
}
