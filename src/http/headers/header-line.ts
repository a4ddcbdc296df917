// Header lines that are written in advance: "name: value CRLF" as bytes, copied into a head in one go.

import type { HeaderKey } from '../../common/header-names.js';
import type { HeaderBlock } from './header-block.js';

/** One line, made when configuration is read. */
export class HeaderLine {
  readonly key: HeaderKey;
  readonly bytes: Uint8Array;

  constructor(key: HeaderKey, value: string | Uint8Array) {
    this.key = key;
    this.bytes = Buffer.concat([Buffer.from(`${key.name}: `), Buffer.from(value), Buffer.from('\r\n')]);
  }

  get isEmpty(): boolean {
    return this.bytes.length === this.key.bytes.length + 4;
  }

  /** Adds the line behind the other fields. */
  addTo(headers: HeaderBlock): void {
    const line = this.bytes;
    const length = line.length;
    const start = headers.room(length);
    headers.memory.bytes.set(line, start);
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
 * Begins a line "name: " with room for a value of `length` bytes; returns where the value goes. The block's ranges may have
 * moved, so whoever copies from them looks up where they are now. endLine() completes the line.
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

/** Completes the line whose value is written to [valueStart, valueEnd), and adds it as a field. */
export function endLine(headers: HeaderBlock, key: HeaderKey, valueStart: number, valueEnd: number): void {
  const { bytes } = headers.memory;
  bytes[valueEnd] = 13;
  bytes[valueEnd + 1] = 10;
  const nameEnd = valueStart - 2;
  headers.addField(key.id, nameEnd - key.bytes.length, nameEnd, valueStart, valueEnd, valueEnd + 2);
}

/** Copies [from, end) to `to`. Short ranges byte by byte: calling copyWithin() costs as much as 60 of them. */
export function copyBytes(bytes: Uint8Array, to: number, from: number, end: number): void {
  if (end - from > 64) bytes.copyWithin(to, from, end);
  else while (from < end) bytes[to++] = bytes[from++]!;
}

/** Writes Latin-1 text at `at`; returns where it ends. */
export function writeLatin1(bytes: Uint8Array, at: number, text: string): number {
  for (let i = 0; i < text.length; i++) bytes[at++] = text.charCodeAt(i);
  return at;
}
