// What a filter chain asks of its connections on one worker: to go on, or to end with their next response.

import type { Random } from '../common/random.js';
import { closesConnection, type DrainWindow, moreUrgent } from './drain-window.js';
import type { Departures } from './travel.js';

export class ListenerDrain {
  /** Undefined as long as nothing drains. */
  window: DrainWindow | undefined;
  /** Undefined as long as connections do not leave for another process. */
  departures: Departures | undefined;
  readonly #health: DrainHealth | undefined;

  /** `health` counts for listeners of drain_type DEFAULT; undefined with MODIFY_ONLY. */
  constructor(health: DrainHealth | undefined) {
    this.#health = health;
  }

  /** It drains from now on, unless it does already and will be over sooner. */
  begin(window: DrainWindow): void {
    this.window = moreUrgent(this.window, window);
  }

  /** Whether the final response that is sent at `nowMs` (monotonic) is the last on its connection. */
  shouldClose(nowMs: number, random: Random): boolean {
    const { window } = this;
    if (window !== undefined && closesConnection(window, nowMs, random)) return true;
    return this.#health?.isFailedOnPurpose === true;
  }
}

/** POST /healthcheck/fail has been asked for: it may change between two responses. */
export interface DrainHealth {
  readonly isFailedOnPurpose: boolean;
}
