// Errors of the kernel by number, as people read them.

import { constants } from 'node:os';
import { getSystemErrorMap } from 'node:util';

const texts = new Map<number, string>(
  Object.values(constants.errno).map((errno) => [errno, getSystemErrorMap().get(-errno)?.[1] ?? `errno ${errno}`]),
);

/** What an errno means: 'connection refused'; `errno 0` when there is none. */
export function errorName(errno: number): string {
  return texts.get(errno) ?? `errno ${errno}`;
}
