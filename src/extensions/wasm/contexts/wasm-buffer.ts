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

/** Part of a body: bytes are put before or after it, or replace all of it, as in Envoy. */
export class BodyBuffer implements WasmBuffer {
  /** Undefined: unchanged. */
  replacement: Uint8Array | undefined;
  readonly #bytes: Uint8Array;
  readonly #maxLength: number;

  /** `bytes`: valid while the buffer is used. */
  constructor(bytes: Uint8Array, maxLength: number) {
    this.#bytes = bytes;
    this.#maxLength = maxLength;
  }

  get #now(): Uint8Array {
    return this.replacement ?? this.#bytes;
  }

  get length(): number {
    return this.#now.length;
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
    if (total > this.#maxLength) return Result.InternalFailure;
    this.replacement = Buffer.concat(parts);
    return Result.Ok;
  }
}
