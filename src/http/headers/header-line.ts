// Prepared header lines: "name: value CRLF" as bytes, copied into a head at once.

import { copyBytes } from '../../common/copy-bytes.js';
import type { HeaderKey } from '../../common/text/header-names.js';
import type { Memory } from '../../io/memory.js';
import type { HeaderBlock } from './header-block.js';

/**
 * Text that is copied into heads eight bytes at a time, because for short texts a call of set() costs more than the copy. The eight bytes
 * are copied as a float64. ASCII bytes never form a NaN, whose bits a copy may change.
 */
export class PreparedText {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  /** The same bytes as float64 numbers. */
  readonly #numbers: Float64Array;
  #length = 0;
  /** All bytes combined by OR. */
  #bits = 0;

  constructor(capacity: number) {
    this.#numbers = new Float64Array((capacity + 7) >> 3);
    this.#bytes = new Uint8Array(this.#numbers.byteLength);
    this.#view = new DataView(this.#bytes.buffer);
  }

  /** Length of the text in bytes. */
  get length(): number {
    return this.#length;
  }

  /** Writes Latin-1 text at `at`. The text ends after it; returns that offset. */
  write(at: number, text: string): number {
    const bytes = this.#bytes;
    const first = at >> 3;
    let bits = at === 0 ? 0 : this.#bits;
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      bytes[at++] = code;
      bits |= code;
    }
    for (let i = first; 8 * i < at; i++) this.#numbers[i] = this.#view.getFloat64(8 * i, true);
    this.#bits = bits;
    this.#length = at;
    return at;
  }

  copyTo(memory: Memory, to: number): void {
    const length = this.#length;
    const { view } = memory;
    if (length < 8 || this.#bits > 127) {
      copyBytes(view, to, this.#view, 0, length);
      return;
    }
    const numbers = this.#numbers;
    const whole = length >> 3;
    for (let i = 0; i < whole; i++) view.setFloat64(to + 8 * i, numbers[i]!, true);
    // The last eight bytes, some of them copied a second time.
    const last = length - 8;
    if ((length & 7) !== 0) view.setFloat64(to + last, this.#view.getFloat64(last, true), true);
  }
}

/** A line that is prepared when the configuration is loaded. */
export class HeaderLine {
  readonly key: HeaderKey;
  readonly #text: PreparedText;

  constructor(key: HeaderKey, value: string | Uint8Array) {
    const text = `${key.name}: ${Buffer.from(value).toString('latin1')}\r\n`;
    this.key = key;
    this.#text = new PreparedText(text.length);
    this.#text.write(0, text);
  }

  get isEmpty(): boolean {
    return this.#text.length === this.key.bytes.length + 4;
  }

  /** Appends the line to the fields. */
  addTo(headers: HeaderBlock): void {
    const { length } = this.#text;
    const start = headers.room(length);
    this.#text.copyTo(headers.memory, start);
    const nameEnd = start + this.key.bytes.length;
    headers.addField(this.key.id, start, nameEnd, nameEnd + 2, start + length - 2, start + length);
  }

  /** Replaces all fields of this name. */
  setIn(headers: HeaderBlock): void {
    headers.remove(this.key);
    this.addTo(headers);
  }
}

/**
 * Begins a line "name: " with room for a value of `length` bytes. Returns the value's offset. The block's ranges may have moved: callers
 * that copy from them must read the offsets afterwards. endLine() completes the line.
 */
export function beginLine(headers: HeaderBlock, key: HeaderKey, length: number): number {
  const name = key.bytes;
  const start = headers.room(name.length + length + 4);
  const { bytes } = headers.memory;
  for (let i = 0; i < name.length; i++) bytes[start + i] = name[i]!;
  bytes[start + name.length] = 58;
  bytes[start + name.length + 1] = 32;
  return start + name.length + 2;
}

/** Completes the line with the value [valueStart, valueEnd) and adds it as a field. */
export function endLine(headers: HeaderBlock, key: HeaderKey, valueStart: number, valueEnd: number): void {
  const { bytes } = headers.memory;
  bytes[valueEnd] = 13;
  bytes[valueEnd + 1] = 10;
  const nameEnd = valueStart - 2;
  headers.addField(key.id, nameEnd - key.bytes.length, nameEnd, valueStart, valueEnd, valueEnd + 2);
}

/** Writes Latin-1 text at `at`. Returns the offset after it. */
export function writeLatin1(bytes: Uint8Array, at: number, text: string): number {
  for (let i = 0; i < text.length; i++) bytes[at++] = text.charCodeAt(i);
  return at;
}
