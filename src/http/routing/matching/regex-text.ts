// Converts header bytes to the text that configured regular expressions match: UTF-8, as RE2 reads bytes in Envoy. byteText() is the
// inverse.

import type { TextMemory } from '../../../access-log/stream/header-view.js';
import { byteText } from '../../../common/text/byte-text.js';
import type { Replacement } from '../../../common/text/regex.js';

/** Returns bytes[start, end) as text. This is the only place where matching creates a string. */
export function regexText(memory: TextMemory, start: number, end: number): string {
  const text = memory.text(start, end);
  return isAscii(memory.bytes, start, end) ? text : Buffer.from(text, 'latin1').toString('utf8');
}

/**
 * Returns bytes[start, end) with all matches replaced, one character per byte. In text that is not valid UTF-8, each byte counts as a
 * character.
 */
export function replacedText(memory: TextMemory, start: number, end: number, replacement: Replacement): string {
  const bytes = memory.text(start, end);
  const text = regexText(memory, start, end);
  return byteText(text) === bytes ? byteText(replacement.apply(text)) : replacement.apply(bytes, byteText);
}

function isAscii(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (bytes[at]! > 127) return false;
  return true;
}
