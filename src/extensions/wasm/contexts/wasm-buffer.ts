// Bytes that modules read, and some that they change.

import { Result } from '../abi.js';

export interface WasmBuffer {
  readonly length: number;
  /** Returns bytes, for example a view that is valid until the module runs. The range is within the buffer. */
  slice(start: number, length: number): Uint8Array;
  /** Replaces a range. */
  replace(start: number, length: number, data: Uint8Array): Result;
}

/** Bytes that cannot be changed. */
export class FixedBuffer implements WasmBuffer {
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get length(): number {
    return this.#bytes.length;
  }

  slice(start: number, length: number): Uint8Array {
    return this.#bytes.subarray(start, start + length);
  }

  replace(): Result {
    return Result.BadArgument;
  }
}

/** What a BodyBuffer shows. */
export interface ShownBody {
  readonly length: number;
  /** Returns the bytes, valid while the buffer is used. */
  read(): Uint8Array;
  /** Maximum bytes after a change. */
  readonly maxLength: number;
  /** Called instead of a change that needs more. */
  tooLong(): void;
}

/** Part of a body: bytes are put before or after it, or replace all of it, as in Envoy. It is read when the module does so. */
export class BodyBuffer implements WasmBuffer {
  /** Undefined: unchanged. */
  replacement: Uint8Array | undefined;
  readonly #shown: ShownBody;
  #read: Uint8Array | undefined;

  constructor(shown: ShownBody) {
    this.#shown = shown;
  }

  get #now(): Uint8Array {
    return this.replacement ?? (this.#read ??= this.#shown.read());
  }

  get length(): number {
    return this.replacement?.length ?? this.#shown.length;
  }

  slice(start: number, length: number): Uint8Array {
    return this.#now.subarray(start, start + length);
  }

  replace(start: number, length: number, data: Uint8Array): Result {
    const now = this.#now;
    let parts: Uint8Array[];
    if (start === 0) {
      if (length === 0) parts = [data, now];
      else if (length >= now.length) parts = [data];
      else return Result.BadArgument;
    } else if (start >= now.length) parts = [now, data];
    else return Result.BadArgument;
    const total = parts.reduce((sum, part) => sum + part.length, 0);
    // Modules take a failure for a defect of the host, and end.
    if (total > this.#shown.maxLength) this.#shown.tooLong();
    else this.replacement = Buffer.concat(parts);
    return Result.Ok;
  }
}
