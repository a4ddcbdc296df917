// Values over time: what a counter grew by in a second, and the last values of a figure.

/** Rates of counters that are asked for again and again. */
export class Rates {
  #totals = new Map<string, number>();
  #next = new Map<string, number>();
  #seconds = 0;
  #readAt: number | undefined;

  /** Begins a reading at a time in milliseconds: rates are those since the reading before it. */
  begin(nowMs: number): void {
    this.#totals = this.#next;
    this.#next = new Map();
    this.#seconds = this.#readAt === undefined ? 0 : (nowMs - this.#readAt) / 1000;
    this.#readAt = nowMs;
  }

  /** Notes a counter's value. Its rate; undefined at its first reading. After a reset it has grown from 0. */
  read(name: string, total: number): number | undefined {
    const growth = this.growth(name, total);
    return growth !== undefined && growth < 0 ? total / this.#seconds : growth;
  }

  /** As read(), for what may also become less. */
  growth(name: string, value: number): number | undefined {
    const before = this.#totals.get(name);
    this.#next.set(name, value);
    if (before === undefined || this.#seconds === 0) return undefined;
    return (value - before) / this.#seconds;
  }
}

/** The last values of a figure, oldest first. */
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
