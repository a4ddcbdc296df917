// Which connections of a thread are the two ends of one, and what each end still waits for. See InnerConnections.

export class InnerPairs {
  /** IDs of the opening ends whose other end has no owner yet, by its descriptor. */
  readonly #openers = new Map<number, number>();
  /** The ID of the other end, in both directions. */
  readonly #others = new Map<number, number>();
  /** Ends to which a reset will be delivered. */
  readonly #resetting = new Set<number>();
  /** Tokens of late handlers for closes that have bytes to send, by the ID of the end that receives them. */
  readonly #flushes = new Map<number, number>();

  /** The other end of `opener` is `fd` until give() is called with it. */
  open(opener: number, fd: number): void {
    this.#openers.set(fd, opener);
  }

  /** Connects the ends: the descriptor has become the connection `id`. */
  accepted(fd: number, id: number): void {
    const opener = this.#openers.get(fd);
    if (opener === undefined) return;
    this.#others.set(id, opener).set(opener, id);
  }

  /** Called when the descriptor has an owner, or is closed. */
  given(fd: number): void {
    this.#openers.delete(fd);
  }

  /** No connection has another end in this thread: the calls below are not needed. */
  get isEmpty(): boolean {
    return this.#others.size === 0 && this.#resetting.size === 0 && this.#flushes.size === 0;
  }

  /** Returns the ID of the other end; undefined: there is none, or it is closed. */
  other(id: number): number | undefined {
    return this.#others.get(id);
  }

  /** Called when an end is closed with bytes to send: `token` is that of the late handler, or 0, until takeFlush(). */
  flushing(other: number, token: number): void {
    this.#flushes.set(other, token);
  }

  /** Returns and forgets the token of an end that receives the rest of a closed one; undefined: there is none. */
  takeFlush(id: number): number | undefined {
    const token = this.#flushes.get(id);
    if (token !== undefined) this.#flushes.delete(id);
    return token;
  }

  /** Called when an end is closed. */
  closed(id: number): void {
    this.#resetting.delete(id);
    const other = this.#others.get(id);
    if (other === undefined) return;
    this.#others.delete(id);
    this.#others.delete(other);
  }

  /** Called when an end is reset. Returns the other end, for which takeReset() must be called in a later turn; undefined: there is none. */
  reset(id: number): number | undefined {
    const other = this.#others.get(id);
    this.closed(id);
    if (other !== undefined) this.resetting(other);
    return other;
  }

  /** Called when a reset must be delivered to an end, as after reset(). */
  resetting(id: number): void {
    this.#resetting.add(id);
  }

  /** Returns whether a reset will be delivered to the end: until then its stream must not end. */
  isResetting(id: number): boolean {
    return this.#resetting.has(id);
  }

  /** Returns whether the reset has not been delivered yet. It counts as delivered from then on. */
  takeReset(id: number): boolean {
    return this.#resetting.delete(id);
  }

  /** Returns the descriptors without an owner, and forgets everything. */
  clear(): number[] {
    const left = [...this.#openers.keys()];
    this.#openers.clear();
    this.#others.clear();
    this.#resetting.clear();
    this.#flushes.clear();
    return left;
  }
}
