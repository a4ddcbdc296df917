// Error names of the kernel by number, in the words of strerror(3), as other proxies write them.

import { constants } from 'node:os';
import { getSystemErrorMap } from 'node:util';

/** Errors for which libuv uses other words than strerror(3). */
const OTHER_WORDS = new Map<number, string>([
  [constants.errno.EHOSTUNREACH, 'No route to host'],
  [constants.errno.EADDRNOTAVAIL, 'Cannot assign requested address'],
]);

const texts = new Map<number, string>(Object.values(constants.errno).map((errno) => [errno, textOf(errno)]));

/** Returns the meaning of an errno, such as 'Connection refused'; `errno N` when it is not known. */
export function errorName(errno: number): string {
  return texts.get(errno) ?? `errno ${errno}`;
}

function textOf(errno: number): string {
  const text = OTHER_WORDS.get(errno) ?? getSystemErrorMap().get(-errno)?.[1] ?? `errno ${errno}`;
  return text.charAt(0).toUpperCase() + text.slice(1);
}
