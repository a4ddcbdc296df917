// The action shrink_heap: while it is active, all threads collect their garbage and return free memory to the kernel at an interval.

import { durationMs } from '../../common/time/duration.js';
import { MAX_TIMER_MS } from '../../common/time/max-timer.js';
import { Action } from '../../config/fields/overload-names.js';
import type { OverloadAction } from '../../config/generated/api.js';
import { unpack } from '../../config/schema/any.js';
import type { OverloadState } from '../../runtime/overload/overload-state.js';
import { overloadPrefix, ShrinkHeapStats } from '../../stats/layouts/overload.js';
import type { Scope } from '../../stats/thread-stats.js';
import type { WorkerScopes } from '../workers/worker-scopes.js';

/** As in Envoy. */
const DEFAULT_INTERVAL_MS = 10_000;

export class ShrinkHeap {
  readonly #intervalMs: number;
  readonly #stats: Scope;
  readonly #shrink: () => void;
  #timer: NodeJS.Timeout | undefined;

  /** `shrink` makes all threads shrink. */
  constructor({ typed_config: config }: OverloadAction, scopes: Pick<WorkerScopes, 'add'>, shrink: () => void) {
    const { timer_interval: interval } = unpack(config, 'envoy.config.overload.v3.ShrinkHeapConfig') ?? {};
    this.#intervalMs = Math.min(MAX_TIMER_MS, durationMs(interval, DEFAULT_INTERVAL_MS));
    this.#stats = scopes.add(overloadPrefix(Action.ShrinkHeap), ShrinkHeapStats);
    this.#shrink = shrink;
  }

  /** Called with the current state. */
  update(state: OverloadState): void {
    const isActive = state[Action.ShrinkHeap] === 1;
    if (isActive === (this.#timer !== undefined)) return;
    clearInterval(this.#timer);
    this.#timer = isActive ? setInterval(() => this.#act(), this.#intervalMs) : undefined;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #act(): void {
    this.#stats.increment(ShrinkHeapStats.at.shrink_count);
    this.#shrink();
  }
}
