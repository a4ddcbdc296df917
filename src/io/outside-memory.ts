// The memory that a thread's streams use outside of its arena, such as the state of compression: reserved before it is allocated, so that
// clients cannot make it grow without limit.

export class OutsideMemory {
  readonly limit: number;
  /** How often there was no room for something that needs it. */
  refusals = 0;
  #reserved = 0;

  constructor(limit: number) {
    this.limit = limit;
  }

  /** Reserved bytes. */
  get reserved(): number {
    return this.#reserved;
  }

  /** Returns false if there is no room. A single reservation may exceed the limit, since nothing could use it otherwise. */
  reserve(bytes: number): boolean {
    if (this.#reserved > 0 && this.#reserved + bytes > this.limit) return false;
    this.#reserved += bytes;
    return true;
  }

  release(bytes: number): void {
    this.#reserved -= bytes;
  }
}
