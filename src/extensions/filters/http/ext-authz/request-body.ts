// Waits for the body of a request, or its beginning, before the service is asked (with_request_body).

import type { BufferSettings } from '../../../../config/generated/api.js';
import type { Memory, StreamControl } from '../../../sdk.js';

/** The compiled settings. */
export interface BodyRules {
  readonly maxBytes: number;
  /** The service receives the beginning of a longer body. Otherwise the client gets 413. */
  readonly mayBePartial: boolean;
  /** The body need not be UTF-8. */
  readonly isBinary: boolean;
  readonly memory: Memory;
}

export interface RequestBody {
  readonly bytes: Uint8Array;
  /** More follows, or may follow: its sender has not ended the body. */
  readonly isPartial: boolean;
  readonly isBinary: boolean;
}

export function bodyRules(config: BufferSettings | undefined, memory: Memory): BodyRules | undefined {
  if (config === undefined) return undefined;
  return {
    maxBytes: config.max_request_bytes!,
    mayBePartial: config.allow_partial_message ?? false,
    isBinary: config.pack_as_bytes ?? false,
    memory,
  };
}

/** A body on its way. The stream holds its bytes. */
export class BodyWait {
  readonly #stream: StreamControl;
  readonly #rules: BodyRules;
  readonly #length: number;

  /** `length`: of a body that does not end the stream; otherwise infinite. */
  constructor(stream: StreamControl, rules: BodyRules, length: number) {
    this.#stream = stream;
    this.#rules = rules;
    this.#length = length;
    if (!rules.mayBePartial) stream.setRequestBufferLimit(rules.maxBytes);
  }

  /** Returns the body if this piece completes what the service gets; undefined: more is needed. The piece must be held. */
  received(offset: number, length: number, endStream: boolean): RequestBody | undefined {
    const { mayBePartial, maxBytes, memory } = this.#rules;
    const held = this.#stream.heldRequestBytes();
    const isLong = held + length >= maxBytes;
    const isWhole = endStream || held + length >= this.#length;
    if (!isWhole && !(mayBePartial && isLong)) return undefined;
    // The stream refuses the piece.
    if (!mayBePartial && held + length > maxBytes) return undefined;
    const bytes = Buffer.concat([
      this.#stream.readRequestBytes(),
      memory.bytes.subarray(offset, offset + Math.max(0, Math.min(length, maxBytes - held))),
    ]);
    return this.#bodyOf(bytes, !isWhole || held + length > maxBytes);
  }

  /** Returns the body of a request that ends with trailers. */
  complete(): RequestBody {
    return this.#bodyOf(this.#stream.readRequestBytes(), this.#stream.heldRequestBytes() > this.#rules.maxBytes);
  }

  #bodyOf(bytes: Uint8Array, isPartial: boolean): RequestBody {
    const { isBinary, maxBytes } = this.#rules;
    return { bytes: bytes.subarray(0, maxBytes), isPartial, isBinary };
  }
}
