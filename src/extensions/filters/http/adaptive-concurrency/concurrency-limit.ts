// The limit of a filter chain on one worker. The first worker calculates it for all.

import { type Clock, type Random, type Scope, Timer, type WorkerContext } from '../../../sdk.js';
import { Gradient, Word } from './gradient.js';
import type { GradientSettings } from './settings.js';
import { SharedMemories } from './shared-memories.js';
import { GradientStats } from './stats.js';

export class ConcurrencyLimit {
  readonly stats: Scope;
  readonly clock: Clock;
  /** Undefined until the primary has published its memory: requests are not limited. */
  gradient: Gradient | undefined = undefined;
  private readonly context: WorkerContext;
  private readonly random: Random;
  private readonly settings: GradientSettings;
  private readonly stopFinding: () => void;
  private readonly updateTimer = new Timer<ConcurrencyLimit>(this, (limit) => limit.update());
  private readonly measureTimer = new Timer<ConcurrencyLimit>(this, (limit) => limit.measure());
  /** A measurement ran at the last update. */
  private wasMeasuring = true;
  /** On the first worker, the limits with this memory: only the first of them calculates, as often as it is configured. */
  private peers: Set<ConcurrencyLimit> | undefined = undefined;

  /** `key`: see shareMemory(). */
  constructor(context: WorkerContext, key: string, settings: GradientSettings, stats: Scope) {
    this.context = context;
    this.clock = context.clock;
    this.random = context.random;
    this.settings = settings;
    this.stats = stats;
    const memories = SharedMemories.of(context);
    this.stopFinding = memories.find(key, (memory) => {
      this.gradient = new Gradient(memory, settings);
      if (!memories.isLeader) return;
      this.peers = ofMemories.get(memory) ?? new Set();
      ofMemories.set(memory, this.peers.add(this));
      if (this.peers.size === 1) this.lead();
    });
  }

  /** Begins a request unless too many are in flight. Returns false, and counts that, if so. */
  tryBegin(): boolean {
    const { at } = GradientStats;
    if (this.stats.total(at.rq_outstanding) >= this.gradient!.limit) {
      this.stats.increment(at.rq_blocked);
      return false;
    }
    this.stats.increment(at.rq_outstanding);
    return true;
  }

  /** Ends a request that has begun. `startMs`: when it began; undefined: it was aborted, and its latency does not count. */
  end(startMs: number | undefined): void {
    this.stats.decrement(GradientStats.at.rq_outstanding);
    if (startMs !== undefined) this.gradient!.record(startMs, this.clock.monotonicMs);
  }

  close(): void {
    this.stopFinding();
    this.context.timers.cancel(this.updateTimer);
    this.context.timers.cancel(this.measureTimer);
    this.resign();
  }

  /** Begins to calculate the limit. */
  private lead(): void {
    this.show(this.gradient!);
    this.context.timers.reschedule(this.updateTimer, this.settings.updateMs);
  }

  /** Leaves the calculation to the next one of the same memory. */
  private resign(): void {
    const { peers } = this;
    if (peers === undefined) return;
    const [first] = peers;
    peers.delete(this);
    const [next] = peers;
    if (first === this) next?.lead();
  }

  private update(): void {
    const { context, settings } = this;
    const gradient = this.gradient!;
    const isStuck = gradient.update();
    if (!gradient.isMeasuring && settings.fixedMs === 0) {
      if (isStuck) this.measure();
      else if (this.wasMeasuring) this.plan();
    }
    this.wasMeasuring = gradient.isMeasuring;
    this.show(gradient);
    context.timers.reschedule(this.updateTimer, settings.updateMs);
  }

  private plan(): void {
    const { jitter, minRttMs } = this.settings;
    const spreadMs = Math.ceil(minRttMs * jitter);
    this.context.timers.reschedule(this.measureTimer, minRttMs + (spreadMs > 0 ? this.random.below(spreadMs) : 0));
  }

  private measure(): void {
    this.context.timers.cancel(this.measureTimer);
    this.gradient!.measure(this.clock.monotonicMs);
    this.wasMeasuring = true;
    this.show(this.gradient!);
  }

  /** Sets the gauges, which are the sums of all workers: only one worker sets them. */
  private show(gradient: Gradient): void {
    const { stats } = this;
    const { at } = GradientStats;
    stats.set(at.burst_queue_size, gradient.read(Word.Burst));
    stats.set(at.concurrency_limit, gradient.limit);
    stats.set(at.gradient, gradient.read(Word.Gradient));
    stats.set(at.min_rtt_calculation_active, gradient.isMeasuring ? 1 : 0);
    stats.set(at.min_rtt_msecs, Math.floor(gradient.read(Word.MinRtt) / 1000));
    stats.set(at.sample_rtt_msecs, Math.floor(gradient.read(Word.SampleRtt) / 1000));
  }
}

const ofMemories = new WeakMap<SharedArrayBuffer, Set<ConcurrencyLimit>>();
