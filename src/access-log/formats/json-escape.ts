// Escapes raw bytes as the content of a JSON string, in place. Most values need no change and cost one scan.

import { utf8Length } from '../../common/text/utf8.js';
import type { LogBuffer } from '../log-buffer.js';

const QUOTE = 34;
const BACKSLASH = 92;

/** Letters of the two-character escapes, by byte. */
const SHORT_ESCAPES: Readonly<Record<number, number>> = {
  8: 98,
  9: 116,
  10: 110,
  12: 102,
  13: 114,
  [QUOTE]: QUOTE,
  [BACKSLASH]: BACKSLASH,
};

/**
 * Escapes the bytes from `start` on. Valid UTF-8 is kept; other bytes are written as Latin-1 characters, so that the line is
 * valid JSON for any input.
 */
export function escapeJson(out: LogBuffer, start: number): void {
  const end = out.length;
  const at = plainEnd(out.view, start, end);
  if (at === end) return;
  const rest = out.bytes.slice(at, end);
  out.length = at;
  appendEscaped(rest, out);
}

/** Returns the offset of the first byte in [at, end) that may need escaping, or `end`. */
function plainEnd(view: DataView, at: number, end: number): number {
  while (at < end) {
    for (; at + 4 <= end; at += 4) {
      const word = view.getInt32(at, true);
      const quotes = (word ^ 0x22222222) - 0x01010101;
      const backslashes = (word ^ 0x5c5c5c5c) - 0x01010101;
      // Sets the high bit of each byte that is below space, a quote, a backslash, or above 127 (which keeps its bit in one of the
      // last two terms). A carry may set it for one byte too many; the check of single bytes corrects that.
      if ((((word - 0x20202020) | quotes | backslashes) & 0x80808080) !== 0) break;
    }
    const stop = Math.min(at + 4, end);
    for (; at < stop; at++) if (!isPlain(view.getUint8(at))) return at;
  }
  return end;
}

function isPlain(byte: number): boolean {
  return byte >= 32 && byte < 128 && byte !== QUOTE && byte !== BACKSLASH;
}

function appendEscaped(raw: Uint8Array, out: LogBuffer): void {
  for (let at = 0; at < raw.length; ) {
    const byte = raw[at]!;
    const letter = SHORT_ESCAPES[byte];
    const length = utf8Length(raw, at);
    if (letter !== undefined) {
      out.byte(BACKSLASH);
      out.byte(letter);
    } else if (length === 0 || byte < 32) {
      out.text(`\\u00${byte.toString(16).padStart(2, '0')}`);
    } else {
      for (let i = 0; i < length; i++) out.byte(raw[at + i]!);
    }
    at += length || 1;
  }
}
