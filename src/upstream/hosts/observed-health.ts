// Observed health of a cluster's hosts, as HealthFlag bits in addition to those from discovery. Each observer owns some of the
// bits, and clears them when the host is removed.

export class ObservedHealth {
  /** Undefined until a bit is set, as in most clusters. */
  #flags: Map<string, number> | undefined;

  /** Returns the HealthFlag bits of the host with this key (keyOf()). */
  flagsOf(key: string): number {
    return this.#flags?.get(key) ?? 0;
  }

  /** Sets the bits in `mask` to `flags`. Returns whether that changes anything. */
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
