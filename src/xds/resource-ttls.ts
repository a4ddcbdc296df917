// Times to live of resources: one timer, at the earliest end.

import { LONGEST_TIMER_MS } from '../common/longest-timer.js';

export class ResourceTtls {
  readonly #expired: (names: readonly string[]) => void;
  /** When each ends, on the clock of performance.now(). */
  readonly #ends = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;

  /** `expired` gets names whose time is over. */
  constructor(expired: (names: readonly string[]) => void) {
    this.#expired = expired;
  }

  /** Times begin, or begin anew; undefined: the resource lives for ever. Resources that are not there are forgotten. */
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
    clearTimeout(this.#timer);
  }

  #arm(nowMs: number): void {
    clearTimeout(this.#timer);
    if (this.#ends.size === 0) return;
    let earliest = Number.POSITIVE_INFINITY;
    for (const end of this.#ends.values()) if (end < earliest) earliest = end;
    this.#timer = setTimeout(() => this.#expire(), Math.min(LONGEST_TIMER_MS, Math.max(1, earliest - nowMs)));
  }

  #expire(): void {
    const nowMs = performance.now();
    const names = [...this.#ends].filter(([, end]) => end <= nowMs).map(([name]) => name);
    for (const name of names) this.#ends.delete(name);
    this.#arm(nowMs);
    if (names.length > 0) this.#expired(names);
  }
}
