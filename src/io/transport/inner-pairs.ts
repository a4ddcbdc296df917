// The two ends of connections within a thread. The kernel delivers no reset between the sockets of a pair: the transport passes it on, so
// that a stream that was cut off does not look complete.

export class InnerPairs {
  /** IDs of the opening ends whose other end nobody has yet, by its descriptor. */
  readonly #openers = new Map<number, number>();
  /** The ID of the other end, in both directions. */
  readonly #others = new Map<number, number>();
  /** Ends that are about to learn of a reset. */
  readonly #resetting = new Set<number>();

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
    return this.#others.size === 0 && this.#resetting.size === 0;
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
    if (other !== undefined) this.#resetting.add(other);
    return other;
  }

  /** Returns whether the end still has to learn of the reset. */
  takeReset(id: number): boolean {
    return this.#resetting.delete(id);
  }

  /** Returns the descriptors that nobody has yet, and forgets everything. */
  clear(): number[] {
    const left = [...this.#openers.keys()];
    this.#openers.clear();
    this.#others.clear();
    this.#resetting.clear();
    return left;
  }
}
