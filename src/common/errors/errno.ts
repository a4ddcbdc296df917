// Errors of the kernel by number, in the words of strerror(3), which answers and logs of proxies are searched for.

import { constants } from 'node:os';
import { getSystemErrorMap } from 'node:util';

/** Where libuv says it differently. */
const OWN_WORDS = new Map<number, string>([
  [constants.errno.EHOSTUNREACH, 'No route to host'],
  [constants.errno.EADDRNOTAVAIL, 'Cannot assign requested address'],
]);

const texts = new Map<number, string>(Object.values(constants.errno).map((errno) => [errno, textOf(errno)]));

/** What an errno means: 'Connection refused'; `errno 0` when there is none. */
export function errorName(errno: number): string {
  return texts.get(errno) ?? `errno ${errno}`;
}

function textOf(errno: number): string {
  const text = OWN_WORDS.get(errno) ?? getSystemErrorMap().get(-errno)?.[1] ?? `errno ${errno}`;
  return text.charAt(0).toUpperCase() + text.slice(1);
}
