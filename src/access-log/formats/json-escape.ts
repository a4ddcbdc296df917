// Makes raw bytes the inside of a JSON string, in place: most values need no change and cost one scan.

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
 * Escapes what was appended from `start` on. Valid UTF-8 stays; a byte that is not part of any is shown as the Latin-1
 * character it would be, so that the line is valid JSON whatever a peer sent.
 */
export function escapeJson(out: LogBuffer, start: number): void {
  const end = out.length;
  const at = plainEnd(out.view, start, end);
  if (at === end) return;
  const rest = out.bytes.slice(at, end);
  out.length = at;
  appendEscaped(rest, out);
}

/** Offset of the first byte in [at, end) that may need to be changed, or `end`. */
function plainEnd(view: DataView, at: number, end: number): number {
  while (at < end) {
    for (; at + 4 <= end; at += 4) {
      const word = view.getInt32(at, true);
      const quotes = (word ^ 0x22222222) - 0x01010101;
      const backslashes = (word ^ 0x5c5c5c5c) - 0x01010101;
      // The high bit of each byte below space, of quote and backslash, and of those above 127, which stay so in one of the last two. A
      // carry may set one too many, which a look at the single bytes then clears up.
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
    const length = sequenceLength(raw, at);
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

/** Length of the UTF-8 sequence at `at` (RFC 3629 section 4), or 0 when there is none. */
function sequenceLength(bytes: Uint8Array, at: number): number {
  const first = bytes[at]!;
  if (first < 0x80) return 1;
  const length =
    first >= 0xc2 && first < 0xe0 ? 2 : first >= 0xe0 && first < 0xf0 ? 3 : first >= 0xf0 && first < 0xf5 ? 4 : 0;
  if (length === 0 || at + length > bytes.length) return 0;
  const second = bytes[at + 1]!;
  // Overlong forms, surrogates and what is above U+10FFFF.
  if (first === 0xe0 && second < 0xa0) return 0;
  if (first === 0xed && second > 0x9f) return 0;
  if (first === 0xf0 && second < 0x90) return 0;
  if (first === 0xf4 && second > 0x8f) return 0;
  for (let i = 1; i < length; i++) if ((bytes[at + i]! & 0xc0) !== 0x80) return 0;
  return length;
}
