// The stats that a module has defined, by the numbers that it got for them.

import { MetricType, Result } from '../abi.js';
import type { Metrics } from './services.js';

/** Of one VM: each name needs memory that is not freed while the process lives. */
const MAX_METRICS = 1000;
/** The type is in the lowest bits of a number. */
const STEP = 4;
/** Exact as a double. */
const MAX_VALUE = 2n ** 53n - 1n;

interface Metric {
  readonly type: MetricType;
  /** What this VM has counted. */
  value: bigint;
  readonly apply: (amount: number) => void;
}

export class VmMetrics {
  readonly #factory: Metrics;
  readonly #metrics = new Map<number, Metric>();
  /** Numbers by type and name: a module may define a stat again for each request. */
  readonly #ids = new Map<string, number>();
  /** By type. */
  readonly #next = [STEP, STEP, STEP];

  constructor(factory: Metrics) {
    this.#factory = factory;
  }

  /** Returns the number of a stat; undefined: there are too many, or the name has another type. */
  define(type: MetricType, name: string): number | undefined {
    const key = `${type} ${name}`;
    const known = this.#ids.get(key);
    if (known !== undefined) return known;
    if (this.#metrics.size >= MAX_METRICS || name === '' || name.length > 256) return undefined;
    let apply: (amount: number) => void;
    try {
      apply = this.#create(type, name.replace(/[^\x21-\x7e]/g, '_'));
    } catch {
      // A stat of another type has the name, or there are too many.
      return undefined;
    }
    const id = this.#next[type]! + type;
    this.#next[type]! += STEP;
    this.#metrics.set(id, { type, value: 0n, apply });
    this.#ids.set(key, id);
    return id;
  }

  increment(id: number, offset: bigint): Result {
    const metric = this.#metrics.get(id);
    if ((id & 3) === MetricType.Histogram) return Result.BadArgument;
    if (metric === undefined) return Result.NotFound;
    if (metric.type === MetricType.Gauge) return setGauge(metric, metric.value + offset);
    if (offset <= 0n) return Result.BadArgument;
    return addTo(metric, offset);
  }

  record(id: number, value: bigint): Result {
    const metric = this.#metrics.get(id);
    if (metric === undefined) return Result.NotFound;
    if (metric.type === MetricType.Gauge) return setGauge(metric, value);
    if (metric.type === MetricType.Counter) return addTo(metric, value);
    metric.apply(Number(value));
    return Result.Ok;
  }

  /** Returns the value, or a Result if there is none. */
  value(id: number): bigint | Result {
    if ((id & 3) === MetricType.Histogram) return Result.BadArgument;
    return this.#metrics.get(id)?.value ?? Result.NotFound;
  }

  #create(type: MetricType, name: string): (amount: number) => void {
    switch (type) {
      case MetricType.Counter: {
        const counter = this.#factory.counter(name);
        return (amount) => counter.add(amount);
      }
      case MetricType.Gauge: {
        const gauge = this.#factory.gauge(name);
        return (amount) => gauge.set(amount);
      }
      case MetricType.Histogram: {
        const histogram = this.#factory.histogram(name);
        return (amount) => histogram.record(amount);
      }
    }
  }
}

function addTo(metric: Metric, amount: bigint): Result {
  if (amount > MAX_VALUE - metric.value) return Result.BadArgument;
  metric.value += amount;
  metric.apply(Number(amount));
  return Result.Ok;
}

function setGauge(metric: Metric, value: bigint): Result {
  metric.value = value < 0n ? 0n : value > MAX_VALUE ? MAX_VALUE : value;
  metric.apply(Number(metric.value));
  return Result.Ok;
}
