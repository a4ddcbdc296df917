// The streams that this side has reset lately. The peer may send more frames of them before it knows: these are ignored, while frames of
// other closed streams are errors (RFC 9113, section 5.1).

const CAPACITY = 32;

export class ResetStreams {
  /** A ring, allocated with the first reset. */
  #ids: Int32Array | undefined;
  #next = 0;
  /** No stream at or below this one is known to be reset: it may have been. */
  #forgotten = 0;

  add(id: number): void {
    this.#ids ??= new Int32Array(CAPACITY);
    this.#forgotten = Math.max(this.#forgotten, this.#ids[this.#next]!);
    this.#ids[this.#next] = id;
    this.#next = (this.#next + 1) % CAPACITY;
  }

  /** Returns whether this side may have reset the closed stream. */
  has(id: number): boolean {
    return this.#ids !== undefined && (id <= this.#forgotten || this.#ids.includes(id));
  }
}
