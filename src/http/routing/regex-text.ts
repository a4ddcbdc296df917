// Header bytes as the text that a user's regular expression sees: UTF-8, as RE2 reads bytes in Envoy. byteText() is the way back.

import type { Memory } from '../../io/memory.js';

/** bytes [start, end) as text: the only place where matching makes a string. */
export function regexText(memory: Memory, start: number, end: number): string {
  const text = memory.text(start, end);
  return isAscii(memory.bytes, start, end) ? text : Buffer.from(text, 'latin1').toString('utf8');
}

function isAscii(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (bytes[at]! > 127) return false;
  return true;
}
