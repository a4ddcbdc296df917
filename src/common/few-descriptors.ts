// A process that may open too few files even for its own start says so, instead of dying with a stack.

import { messageOf } from './errors.js';
import { print } from './print.js';

/** As the kernel, Node's file functions, its threads and the loader of native modules tell it. */
const SHORTAGE = /EMFILE|ENFILE|too many open files/i;

/** Ends the process with status 1 when that was the reason, and throws `error` when it was another one. */
export function endIfFewDescriptors(error: unknown): never {
  const message = messageOf(error);
  if (!SHORTAGE.test(message)) throw error;
  print(
    process.stderr,
    `error: this process may open too few files: ${message}; raise the limit (ulimit -n, LimitNOFILE=)\n`,
  );
  process.exit(1);
}
