// A growing buffer for log lines, filled without creating strings.

import { copyBytes, viewOf } from '../common/copy-bytes.js';

/** Up to this length copyBytes() is faster than set(), which needs a new view. */
const SHORT_BYTES = 160;

const encoder = new TextEncoder();

export class LogBuffer {
  /** Bytes in use. May be reduced to remove appended bytes. */
  length = 0;
  #bytes!: Uint8Array;
  #view!: DataView;

  /** @param memory for the first bytes, or its size */
  constructor(memory: Uint8Array | number) {
    this.#use(typeof memory === 'number' ? new Uint8Array(memory) : memory);
  }

  get bytes(): Uint8Array {
    return this.#bytes;
  }

  /** A view of `bytes`, valid until more is appended. */
  get view(): DataView {
    return this.#view;
  }

  /** Starts again with an empty buffer in `bytes`. The previous bytes belong to the caller. */
  renew(bytes: Uint8Array): void {
    this.#use(bytes);
    this.length = 0;
  }

  /** Makes room for `count` more bytes. */
  reserve(count: number): void {
    if (this.length + count > this.#bytes.length) this.#grow(this.length + count);
  }

  byte(value: number): void {
    this.reserve(1);
    this.#bytes[this.length++] = value;
  }

  /** Appends [start, end) of `source`. */
  range(source: DataView, start: number, end: number): void {
    const length = end - start;
    this.reserve(length);
    if (length <= SHORT_BYTES) copyBytes(this.#view, this.length, source, start, end);
    else this.#bytes.set(new Uint8Array(source.buffer, source.byteOffset + start, length), this.length);
    this.length += length;
  }

  append(bytes: Uint8Array): void {
    this.reserve(bytes.length);
    this.#bytes.set(bytes, this.length);
    this.length += bytes.length;
  }

  /** Appends text[start, end) as UTF-8. */
  text(text: string, start = 0, end = text.length): void {
    this.reserve(end - start);
    const bytes = this.#bytes;
    let at = this.length;
    for (let i = start; i < end; i++) {
      const code = text.charCodeAt(i);
      if (code > 127) {
        this.length = at;
        this.#encode(text.slice(i, end));
        return;
      }
      bytes[at++] = code;
    }
    this.length = at;
  }

  /** Appends a text with one byte per character. */
  latin1Text(text: string): void {
    this.reserve(text.length);
    const bytes = this.#bytes;
    for (let i = 0; i < text.length; i++) bytes[this.length + i] = text.charCodeAt(i);
    this.length += text.length;
  }

  /** Appends an integer in decimal. */
  number(value: number): void {
    if (value < 0 || value > 999_999_999) {
      this.text(String(value));
      return;
    }
    let digits = 1;
    for (let limit = 10; value >= limit; limit *= 10) digits++;
    this.digits(value, digits);
  }

  /** Appends the last `count` digits of a non-negative integer below 1e9, with leading zeros. */
  digits(value: number, count: number): void {
    this.reserve(count);
    const bytes = this.#bytes;
    for (let at = this.length + count - 1; at >= this.length; at--) {
      const rest = (value / 10) | 0;
      bytes[at] = 48 + value - rest * 10;
      value = rest;
    }
    this.length += count;
  }

  latin1(): string {
    return Buffer.from(this.#bytes.buffer, 0, this.length).toString('latin1');
  }

  #encode(text: string): void {
    this.reserve(text.length * 3);
    this.length += encoder.encodeInto(text, this.#bytes.subarray(this.length)).written;
  }

  #grow(needed: number): void {
    const larger = new Uint8Array(Math.max(needed, this.#bytes.length * 2));
    larger.set(this.#bytes.subarray(0, this.length));
    this.#use(larger);
  }

  #use(bytes: Uint8Array): void {
    this.#bytes = bytes;
    this.#view = viewOf(bytes);
  }
}
