// The received bytes of a connection that its filter has not passed on: a copy for the module.

export class UnseenBytes {
  #bytes = Buffer.alloc(0);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  append(bytes: Uint8Array): void {
    const needed = this.#length + bytes.length;
    if (needed > this.#bytes.length) {
      // Doubling: a client that sends single bytes must not make each of them cost a copy of all.
      const larger = Buffer.alloc(Math.max(needed, 2 * this.#bytes.length));
      larger.set(this.#bytes.subarray(0, this.#length));
      this.#bytes = larger;
    }
    this.#bytes.set(bytes, this.#length);
    this.#length = needed;
  }

  /** Returns all bytes. A module may keep them: later ones are written after them. */
  view(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  /** Forgets the first `length` bytes. */
  drop(length: number): void {
    this.#bytes = this.#bytes.subarray(length, this.#length);
    this.#length -= length;
  }
}
