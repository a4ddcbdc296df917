// Decides when changes of a cluster's hosts are delivered. Changes that neither add nor remove a host, such as changed health,
// are merged for a while (common_lb_config.update_merge_window) instead of being sent to all workers one by one.

import { Timer, type Timers } from '../../../io/time/timing-wheel.js';
import { ClusterManagerStats } from '../../../stats/layouts/cluster.js';
import type { Scope } from '../../../stats/thread-stats.js';

export interface UpdateMergeContext {
  readonly timers: Timers;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** The scope cluster_manager. */
  readonly stats: Scope;
  deliver(): void;
}

export class UpdateMerge {
  readonly #windowMs: number;
  readonly #context: UpdateMergeContext;
  #timer: Timer<UpdateMerge> | undefined;
  #lastMs = Number.NEGATIVE_INFINITY;

  /** With `windowMs` 0, everything is delivered at once. */
  constructor(windowMs: number, context: UpdateMergeContext) {
    this.#windowMs = windowMs;
    this.#context = context;
  }

  /** Delivers now, or at the end of the window if `isMergeable`: no host was added or removed. */
  note(isMergeable: boolean): void {
    const { at } = ClusterManagerStats;
    const { now, stats, timers } = this.#context;
    if (this.#windowMs > 0) {
      const isOutOfWindow = now() - this.#lastMs > this.#windowMs;
      if (isMergeable && !isOutOfWindow) {
        this.#timer ??= new Timer<UpdateMerge>(this, deliverMerged);
        if (!this.#timer.isScheduled) timers.reschedule(this.#timer, this.#windowMs);
        return;
      }
      if (isMergeable) stats.increment(at.update_out_of_merge_window);
      if (this.#timer?.isScheduled) {
        timers.cancel(this.#timer);
        stats.increment(at.update_merge_cancelled);
      }
      this.#lastMs = now();
    }
    stats.increment(at.cluster_updated);
    this.#context.deliver();
  }

  stop(): void {
    if (this.#timer !== undefined) this.#context.timers.cancel(this.#timer);
  }

  deliverMerged(): void {
    this.#lastMs = this.#context.now();
    this.#context.stats.increment(ClusterManagerStats.at.cluster_updated_via_merge);
    this.#context.deliver();
  }
}

function deliverMerged(merge: UpdateMerge): void {
  merge.deliverMerged();
}
