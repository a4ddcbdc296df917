// The gradient controller: compares the latencies of recent requests with that under ideal conditions, and derives from both how many
// requests may be in flight. Its state is shared memory of all workers.

import { BUCKETS, recordLatency, takeQuantile } from './latency-histogram.js';
import type { GradientSettings } from './settings.js';

/** Words of the shared memory. */
export const enum Word {
  /** How many requests may be in flight. */
  Limit = 0,
  /** The limit after the round trip is measured; 0: it is not being measured. */
  Deferred = 1,
  /** Latencies that were recorded since the measurement began. */
  Samples = 2,
  /** How often in succession the limit was the least. */
  AtMinimum = 3,
  /** In microseconds. */
  MinRtt = 4,
  SampleRtt = 5,
  /** 1000 times the gradient. */
  Gradient = 6,
  Burst = 7,
  /** A float64: when the measurement began, in ms of CLOCK_MONOTONIC. */
  Epoch = 8,
  Buckets = 10,
}

/** As often the limit is the least before the round trip is measured again: it may be wrong. */
const MAX_AT_MINIMUM = 5;
const MAX_MICROS = 2 ** 31 - 1;

/** Returns the memory of a controller that has not begun. */
export function gradientMemory(settings: GradientSettings): SharedArrayBuffer {
  const memory = new SharedArrayBuffer((Word.Buckets + BUCKETS) * 4);
  const words = new Int32Array(memory);
  const isMeasured = settings.fixedMs === 0;
  words[Word.Limit] = isMeasured ? settings.measuringLimit : settings.minLimit;
  words[Word.Deferred] = isMeasured ? settings.minLimit : 0;
  words[Word.MinRtt] = settings.fixedMs * 1000;
  return memory;
}

export class Gradient {
  private readonly words: Int32Array;
  private readonly epoch: Float64Array;
  private readonly settings: GradientSettings;

  constructor(memory: SharedArrayBuffer, settings: GradientSettings) {
    this.words = new Int32Array(memory);
    this.epoch = new Float64Array(memory, Word.Epoch * 4, 1);
    this.settings = settings;
  }

  get limit(): number {
    return Atomics.load(this.words, Word.Limit);
  }

  /** The round trip is being measured. */
  get isMeasuring(): boolean {
    return Atomics.load(this.words, Word.Deferred) > 0;
  }

  read(word: Word): number {
    return Atomics.load(this.words, word);
  }

  /** Records a request from `startMs` to `endMs`. The last one of a measurement ends it. */
  record(startMs: number, endMs: number): void {
    const { settings, words } = this;
    // Requests from before the measurement did not run under its conditions.
    if (startMs < this.epoch[0]!) return;
    recordLatency(words, Word.Buckets, Math.round((endMs - startMs) * 1000));
    const samples = Atomics.add(words, Word.Samples, 1) + 1;
    if (samples < settings.requestCount) return;
    const deferred = Atomics.load(words, Word.Deferred);
    // Only one worker ends the measurement.
    if (deferred === 0 || Atomics.compareExchange(words, Word.Deferred, deferred, 0) !== deferred) return;
    const micros = takeQuantile(words, Word.Buckets, settings.quantile);
    if (micros !== undefined) Atomics.store(words, Word.MinRtt, Math.min(micros, MAX_MICROS));
    Atomics.store(words, Word.AtMinimum, 0);
    Atomics.store(words, Word.Limit, deferred);
  }

  /** Begins to measure the round trip, with few requests in flight. */
  measure(nowMs: number): void {
    const { settings, words } = this;
    if (this.isMeasuring) return;
    takeQuantile(words, Word.Buckets, 0);
    this.epoch[0] = nowMs;
    Atomics.store(words, Word.Samples, 0);
    Atomics.store(words, Word.AtMinimum, 0);
    Atomics.store(words, Word.Deferred, this.limit);
    Atomics.store(words, Word.Limit, settings.measuringLimit);
  }

  /** Calculates the limit from the latencies since the last call. Returns whether the round trip should be measured again now. */
  update(): boolean {
    const { settings, words } = this;
    if (this.isMeasuring) return false;
    const micros = takeQuantile(words, Word.Buckets, settings.quantile);
    if (micros === undefined) return false;
    Atomics.store(words, Word.SampleRtt, Math.min(micros, MAX_MICROS));
    // As in Envoy, the fixed round trip has no buffer.
    const buffer = settings.fixedMs > 0 ? 0 : settings.buffer;
    const ideal = this.read(Word.MinRtt) * (1 + buffer);
    const gradient = Math.max(0.5, Math.min(2, ideal / Math.max(1, micros)));
    const limit = this.limit * gradient;
    const burst = Math.sqrt(limit);
    Atomics.store(words, Word.Gradient, Math.floor(gradient * 1000));
    Atomics.store(words, Word.Burst, Math.floor(burst));
    return this.#setLimit(Math.max(settings.minLimit, Math.min(settings.maxLimit, Math.floor(limit + burst))));
  }

  #setLimit(limit: number): boolean {
    const { minLimit } = this.settings;
    const before = Atomics.exchange(this.words, Word.Limit, limit);
    const isStuck = before === minLimit && limit === minLimit;
    Atomics.store(this.words, Word.AtMinimum, isStuck ? this.read(Word.AtMinimum) + 1 : 0);
    return isStuck && this.read(Word.AtMinimum) >= MAX_AT_MINIMUM;
  }
}
