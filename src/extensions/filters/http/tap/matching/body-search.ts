// Searches for patterns in a body that arrives in pieces. All patterns must occur; they may span pieces.

export class BodySearch {
  /** Patterns not found yet. */
  #missing: readonly Uint8Array[];
  /** Bytes still to be searched. */
  #left: number;
  /** The end of the received bytes, in which a pattern may begin. */
  #tail: Buffer = Buffer.alloc(0);

  /** @param limit how many bytes of the body are searched; 0: all */
  constructor(patterns: readonly Uint8Array[], limit: number) {
    this.#missing = patterns;
    this.#left = limit === 0 ? Number.POSITIVE_INFINITY : limit;
  }

  /** All patterns were found. */
  get isFound(): boolean {
    return this.#missing.length === 0;
  }

  /** Further bytes do not change the result. */
  get isDecided(): boolean {
    return this.isFound || this.#left <= 0;
  }

  add(bytes: Uint8Array): void {
    if (this.isDecided) return;
    const text = Buffer.concat([this.#tail, bytes.subarray(0, Math.min(bytes.length, this.#left))]);
    this.#left -= bytes.length;
    this.#missing = this.#missing.filter((pattern) => text.indexOf(pattern) < 0);
    const longest = this.#missing.reduce((length, pattern) => Math.max(length, pattern.length), 1);
    this.#tail = Buffer.from(text.subarray(Math.max(0, text.length - longest + 1)));
  }
}
