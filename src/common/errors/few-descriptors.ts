// Errors of a process that may open too few files.

import { print } from '../process/print.js';
import { messageOf } from './errors.js';

/** As the kernel, Node's file functions, its threads and the loader of native modules tell it. */
const SHORTAGE = /EMFILE|ENFILE|too many open files/i;

export function lacksDescriptors(error: unknown): boolean {
  return SHORTAGE.test(messageOf(error));
}

/**
 * For a process that may open too few files even for its own start: says so, instead of dying with a stack, and ends it with
 * status 1. Throws `error` when the reason was another one.
 */
export function endIfFewDescriptors(error: unknown): never {
  if (!lacksDescriptors(error)) throw error;
  const message = messageOf(error);
  print(
    process.stderr,
    `error: this process may open too few files: ${message}; raise the limit (ulimit -n, LimitNOFILE=)\n`,
  );
  process.exit(1);
}
