// TTLs of resources, with one timer for the earliest expiry. A heartbeat that has arrived but is not handled yet takes effect
// first.

import { PatientTimeout } from '../common/time/patient-timeout.js';

export class ResourceTtls {
  readonly #expired: (names: readonly string[]) => void;
  /** Expiry times on the clock of performance.now(). */
  readonly #ends = new Map<string, number>();
  readonly #handled: () => Promise<void>;
  #timer: PatientTimeout | undefined;

  /** `expired` is called with expired names; `handled` resolves when no heartbeat that has arrived is unhandled. */
  constructor(expired: (names: readonly string[]) => void, handled = () => Promise.resolve()) {
    this.#expired = expired;
    this.#handled = handled;
  }

  /** No resource has a TTL. */
  get isEmpty(): boolean {
    return this.#ends.size === 0;
  }

  /** Starts or restarts TTLs; undefined: the resource has none. Drops resources for which `isThere` is false. */
  update(ttls: Iterable<readonly [name: string, ttlMs: number | undefined]>, isThere: (name: string) => boolean): void {
    const nowMs = performance.now();
    for (const [name, ttlMs] of ttls) {
      if (ttlMs === undefined) this.#ends.delete(name);
      else this.#ends.set(name, nowMs + ttlMs);
    }
    for (const name of this.#ends.keys()) if (!isThere(name)) this.#ends.delete(name);
    this.#arm(nowMs);
  }

  close(): void {
    this.#ends.clear();
    this.#timer?.clear();
  }

  #arm(nowMs: number): void {
    this.#timer?.clear();
    if (this.#ends.size === 0) return;
    let earliest = Number.POSITIVE_INFINITY;
    for (const end of this.#ends.values()) if (end < earliest) earliest = end;
    this.#timer = new PatientTimeout(
      () => void this.#handled().then(() => this.#expire()),
      Math.max(1, earliest - nowMs),
    );
  }

  #expire(): void {
    const nowMs = performance.now();
    const names = [...this.#ends].filter(([, end]) => end <= nowMs).map(([name]) => name);
    for (const name of names) this.#ends.delete(name);
    this.#arm(nowMs);
    if (names.length > 0) this.#expired(names);
  }
}
