// Reads the integers and vectors of TLS messages (RFC 8446, section 3). It never reads beyond the given bytes, and copies nothing.

export class ByteReader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  /** Reads an integer of `size` bytes (1 to 3). Returns -1 when there are fewer bytes. */
  integer(size: number): number {
    if (this.#bytes.length - this.#at < size) return -1;
    let value = 0;
    for (const end = this.#at + size; this.#at < end; this.#at++) value = (value << 8) | this.#bytes[this.#at]!;
    return value;
  }

  /** Returns the next `length` bytes, or undefined when there are fewer. */
  take(length: number): Uint8Array | undefined {
    if (this.#bytes.length - this.#at < length) return undefined;
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  /** Returns the content of a vector whose length has `size` bytes, or undefined when it is incomplete. */
  vector(size: number): Uint8Array | undefined {
    const length = this.integer(size);
    return length < 0 ? undefined : this.take(length);
  }
}

/** Returns the content of a vector that fills `bytes`; undefined: it does not, or it is empty. */
export function wholeVector(bytes: Uint8Array, size: number): Uint8Array | undefined {
  const reader = new ByteReader(bytes);
  const content = reader.vector(size);
  return content !== undefined && content.length > 0 && reader.isAtEnd ? content : undefined;
}

/** Returns the integers of two bytes in a list. A byte left over at the end is ignored. */
export function* integersOf(list: Uint8Array): Generator<number> {
  for (let at = 0; at + 1 < list.length; at += 2) yield (list[at]! << 8) | list[at + 1]!;
}
