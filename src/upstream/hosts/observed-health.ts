// What was seen of a cluster's hosts, as HealthFlag bits: they come on top of those that discovery gives. Each observer owns
// some of the bits, and takes them back when the host is gone.

export class ObservedHealth {
  /** Undefined while nothing has been seen, as of most clusters. */
  #flags: Map<string, number> | undefined;

  /** HealthFlag bits of the host with this key (keyOf()). */
  flagsOf(key: string): number {
    return this.#flags?.get(key) ?? 0;
  }

  /** Of the bits in `mask` the host has these now. Returns whether that is new. */
  set(key: string, mask: number, flags: number): boolean {
    const before = this.flagsOf(key);
    const after = (before & ~mask) | (flags & mask);
    if (after === before) return false;
    this.#flags ??= new Map();
    if (after === 0) this.#flags.delete(key);
    else this.#flags.set(key, after);
    return true;
  }
}
