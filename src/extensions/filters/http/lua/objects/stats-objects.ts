// stats(): counters, gauges and histograms whose names a script chooses, below the filter's own stats. Handles are kept, so that a name is
// looked up once.

import {
  type DynamicCounter,
  type DynamicGauge,
  type DynamicHistogram,
  LuaError,
  type LuaMethod,
  type ThreadStats,
} from '../../../../sdk.js';
import { LuaStats } from '../stats.js';
import { LuaClass } from './classes.js';

/** Maximum number of stat names per filter and worker: each needs memory that is not freed before its chain is removed. */
const MAX_NAMES = 1000;
const UNITS = new Set(['ms', 'milliseconds', 'microseconds', 'nanoseconds', 'bytes', 'unspecified']);

type Stat = LuaCounter | LuaGauge | LuaHistogram;

export class LuaStatsObject {
  readonly #thread: ThreadStats;
  readonly #prefix: string;
  readonly #stats = new Map<string, Stat>();

  constructor(thread: ThreadStats, prefix: string) {
    this.#thread = thread;
    this.#prefix = prefix;
  }

  get lua(): LuaClass {
    return LuaClass.Stats;
  }

  counter(name: string): LuaCounter {
    return this.#of(name, LuaCounter, () => new LuaCounter(this.#thread.dynamicCounter(this.#prefix, name)));
  }

  gauge(name: string): LuaGauge {
    return this.#of(name, LuaGauge, () => new LuaGauge(this.#thread.dynamicGauge(this.#prefix, name)));
  }

  histogram(name: string, unit = 'unspecified'): LuaHistogram {
    if (!UNITS.has(unit)) {
      const units = `'ms', 'milliseconds', 'microseconds', 'nanoseconds', 'bytes', or 'unspecified'`;
      throw new LuaError(`invalid histogram unit '${unit}', expected ${units}`);
    }
    return this.#of(name, LuaHistogram, () => new LuaHistogram(this.#thread.dynamicHistogram(this.#prefix, name)));
  }

  #of<S extends Stat>(name: string, kind: new (...handles: never[]) => S, create: () => S): S {
    const known = this.#stats.get(name);
    if (known instanceof kind) return known;
    if (known !== undefined) throw new LuaError(`the stat '${name}' is of another kind`);
    if (!/^[\w.-]+$/.test(name))
      throw new LuaError(`'${name}' is not a valid stat name: use letters, digits, _, . and -`);
    if (Object.hasOwn(LuaStats.at, name)) throw new LuaError(`the stat '${name}' is Baton's own`);
    if (this.#stats.size >= MAX_NAMES) throw new LuaError(`scripts have at most ${MAX_NAMES} stats`);
    const made = create();
    this.#stats.set(name, made);
    return made;
  }
}

/** value() is what this worker has counted. */
export class LuaCounter {
  readonly #counter: DynamicCounter;
  #value = 0;

  constructor(counter: DynamicCounter) {
    this.#counter = counter;
  }

  get lua(): LuaClass {
    return LuaClass.Counter;
  }

  inc(): void {
    this.add(1);
  }

  add(amount: number): void {
    if (!(amount >= 0)) throw new LuaError('a counter cannot decrease');
    const whole = Math.trunc(amount);
    this.#counter.add(whole);
    this.#value += whole;
  }

  value(): number {
    return this.#value;
  }
}

export class LuaGauge {
  readonly #gauge: DynamicGauge;
  #value = 0;

  constructor(gauge: DynamicGauge) {
    this.#gauge = gauge;
  }

  get lua(): LuaClass {
    return LuaClass.Gauge;
  }

  inc(): void {
    this.set(this.#value + 1);
  }

  dec(): void {
    this.set(this.#value - 1);
  }

  add(amount: number): void {
    this.set(this.#value + amount);
  }

  sub(amount: number): void {
    this.set(this.#value - amount);
  }

  set(value: number): void {
    if (!Number.isFinite(value)) throw new LuaError('a gauge is a finite number');
    this.#value = Math.max(0, Math.trunc(value));
    this.#gauge.set(this.#value);
  }

  value(): number {
    return this.#value;
  }
}

export class LuaHistogram {
  readonly #histogram: DynamicHistogram;

  constructor(histogram: DynamicHistogram) {
    this.#histogram = histogram;
  }

  get lua(): LuaClass {
    return LuaClass.Histogram;
  }

  recordValue(value: number): void {
    if (!(value >= 0 && Number.isFinite(value))) throw new LuaError('a histogram records finite numbers from 0 on');
    this.#histogram.record(value);
  }
}

export const STATS: readonly LuaMethod[] = [
  ['counter', 's', LuaStatsObject.prototype.counter],
  ['gauge', 's', LuaStatsObject.prototype.gauge],
  ['histogram', 'sS', LuaStatsObject.prototype.histogram],
];
export const COUNTER: readonly LuaMethod[] = [
  ['inc', '', LuaCounter.prototype.inc],
  ['add', 'n', LuaCounter.prototype.add],
  ['value', '', LuaCounter.prototype.value],
];
export const GAUGE: readonly LuaMethod[] = [
  ['inc', '', LuaGauge.prototype.inc],
  ['dec', '', LuaGauge.prototype.dec],
  ['add', 'n', LuaGauge.prototype.add],
  ['sub', 'n', LuaGauge.prototype.sub],
  ['set', 'n', LuaGauge.prototype.set],
  ['value', '', LuaGauge.prototype.value],
];
export const HISTOGRAM: readonly LuaMethod[] = [['recordValue', 'n', LuaHistogram.prototype.recordValue]];
