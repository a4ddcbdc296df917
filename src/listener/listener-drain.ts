// The drain state of a filter chain on one worker, which decides whether connections end after their next response.

import type { Random } from '../common/random.js';
import { closesConnection, type DrainWindow, moreUrgent } from './drain-window.js';
import type { HandOverQueue } from './hand-over.js';

export class ListenerDrain {
  /** Undefined while the chain does not drain. */
  window: DrainWindow | undefined;
  /** Undefined while connections do not move to another process. */
  handOverQueue: HandOverQueue | undefined;
  readonly #health: DrainHealth | undefined;

  /** `health` is for listeners with drain_type DEFAULT; undefined with MODIFY_ONLY. */
  constructor(health: DrainHealth | undefined) {
    this.#health = health;
  }

  /** Starts draining, or replaces a drain that would end later. */
  begin(window: DrainWindow): void {
    this.window = moreUrgent(this.window, window);
  }

  /** Returns whether the final response that is sent at `nowMs` (monotonic) is the last on its connection. */
  shouldClose(nowMs: number, random: Random): boolean {
    const { window } = this;
    if (window !== undefined && closesConnection(window, nowMs, random)) return true;
    return this.#health?.isFailRequested === true;
  }
}

/** Whether POST /healthcheck/fail is in effect, which may change between two responses. */
export interface DrainHealth {
  readonly isFailRequested: boolean;
}
