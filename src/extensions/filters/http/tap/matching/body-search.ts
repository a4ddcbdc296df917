// Looks for patterns in a body that comes in pieces: all of them must occur, also across the borders of pieces.

export class BodySearch {
  /** Patterns that have not occurred. */
  #missing: readonly Uint8Array[];
  /** Bytes that are still looked at. */
  #left: number;
  /** The end of what has come: a pattern may begin in it. */
  #tail: Buffer = Buffer.alloc(0);

  /** @param limit how many bytes of the body are looked at; 0: all */
  constructor(patterns: readonly Uint8Array[], limit: number) {
    this.#missing = patterns;
    this.#left = limit === 0 ? Number.POSITIVE_INFINITY : limit;
  }

  /** All patterns have occurred. */
  get isFound(): boolean {
    return this.#missing.length === 0;
  }

  /** Nothing that may still come changes the result. */
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
