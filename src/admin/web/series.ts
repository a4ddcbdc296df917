// Values over time: rates of counters per second, and recent values of a figure.

/** Rates of periodically read counters. */
export class Rates {
  #totals = new Map<string, number>();
  #next = new Map<string, number>();
  #seconds = 0;
  #readAt: number | undefined;

  /** Begins a reading at a time in milliseconds: rates cover the time since the previous reading. */
  begin(nowMs: number): void {
    this.#totals = this.#next;
    this.#next = new Map();
    this.#seconds = this.#readAt === undefined ? 0 : (nowMs - this.#readAt) / 1000;
    this.#readAt = nowMs;
  }

  /**
   * Records a counter's value and returns its rate; undefined at its first reading. A counter that has decreased was reset, so
   * its growth is counted from 0.
   */
  read(name: string, total: number): number | undefined {
    const growth = this.growth(name, total);
    return growth !== undefined && growth < 0 ? total / this.#seconds : growth;
  }

  /** Does the same as read() for values that may decrease. */
  growth(name: string, value: number): number | undefined {
    const before = this.#totals.get(name);
    this.#next.set(name, value);
    if (before === undefined || this.#seconds === 0) return undefined;
    return (value - before) / this.#seconds;
  }
}

/** The recent values of a figure, oldest first. */
export class Series {
  readonly values: number[] = [];
  readonly #length: number;

  constructor(length: number) {
    this.#length = length;
  }

  add(value: number): void {
    this.values.push(value);
    if (this.values.length > this.#length) this.values.shift();
  }
}
