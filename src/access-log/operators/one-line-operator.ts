// Keeps a value on one line of a text log: escapes its control characters, which could forge lines or control a terminal. For values that
// filters, configurations and expressions choose freely; those of headers and names have none.

import type { LogBuffer } from '../log-buffer.js';
import type { StreamInfo } from '../stream/stream-info.js';
import type { Operator } from './operator.js';

export class OneLineOperator implements Operator {
  readonly isNumber = false;
  readonly #operator: Operator;

  constructor(operator: Operator) {
    this.#operator = operator;
  }

  write(info: StreamInfo, out: LogBuffer): boolean {
    const start = out.length;
    if (!this.#operator.write(info, out)) return false;
    const { bytes } = out;
    for (let at = start; at < out.length; at++) {
      if (!isControl(bytes, at)) continue;
      escapeFrom(out, at);
      break;
    }
    return true;
  }
}

/** Returns whether bytes[at] is a control character, or begins one of the range U+0080 to U+009F in UTF-8. */
function isControl(bytes: Uint8Array, at: number): boolean {
  const byte = bytes[at]!;
  return byte < 32 || byte === 127 || (byte === C1 && (bytes[at + 1]! & 0xe0) === 0x80);
}

/** Escapes the control characters from `at` on. */
function escapeFrom(out: LogBuffer, at: number): void {
  const raw = out.bytes.slice(at, out.length + 1);
  const end = out.length - at;
  raw[end] = 0;
  out.length = at;
  for (let index = 0; index < end; index++) {
    let byte = raw[index]!;
    if (!isControl(raw, index)) {
      out.byte(byte);
      continue;
    }
    if (byte === C1) byte = raw[++index]!;
    out.text(byte === NEWLINE ? '\\n' : `\\u00${byte.toString(16).padStart(2, '0')}`);
  }
}

const NEWLINE = 10;
/** The first byte of the range in UTF-8. */
const C1 = 0xc2;
