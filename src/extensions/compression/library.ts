// What compression libraries have in common: each has a name in content-encoding, and makes streams that compress or decompress.

import type { Transform } from 'node:stream';

export interface CompressionLibrary {
  /** The content coding, as in content-encoding. */
  readonly encoding: string;
  /** Its part of the names of stats. */
  readonly statName: string;
  /** Returns a stream for one body. What is written to it is passed on at once, not only at the end. */
  create(): Transform;
  /** Returns the bytes that a stream uses at most, about. `input`: its beginning, at least one byte if there is any. */
  memoryBytes(input: Uint8Array): number;
  /** Compresses a short body at once, which costs less than a stream; absent where it could take long. */
  compressShort?(bytes: Uint8Array): Uint8Array;
}

export interface DecompressionLibrary extends CompressionLibrary {
  /** A body may become at most this many times as long. */
  readonly maxRatio: number;
  /** The counter of bodies that are not valid. */
  readonly errorStat: string;
}

/** The memory of a stream of Node, with its output. */
export const STREAM_BYTES = 48 * 1024;

/** Bytes of a piece of output. Envoy's default of 4096 would cost more steps than it saves memory. */
export const DEFAULT_CHUNK_BYTES = 16 * 1024;

/** Envoy's limit where the configuration cannot set one. */
export const DEFAULT_MAX_RATIO = 100;
