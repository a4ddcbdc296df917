// For which traffic listeners have been stopped by POST /drain_listeners: what is added or changed there later is refused.

import type { Listener } from '../../../config/generated/api.js';
import { type DrainReach, reaches } from '../../draining/drain-reach.js';

export class StoppedDirections {
  readonly #stopped = new Set<DrainReach>();

  /** All listeners have been stopped, or those for inbound traffic. */
  add(reach: DrainReach): void {
    this.#stopped.add(reach);
  }

  /** Whether a listener is for traffic that is no longer taken. */
  includes(listener: Listener): boolean {
    return [...this.#stopped].some((reach) => reaches(reach, listener));
  }
}
