// The traffic directions that POST /drain_listeners has stopped: later additions and changes in these directions are refused.

import type { Listener } from '../../../config/generated/api.js';
import { type DrainReach, reaches } from '../../draining/drain-reach.js';

export class StoppedDirections {
  readonly #stopped = new Set<DrainReach>();

  /** Records that all listeners, or those for inbound traffic, were stopped. */
  add(reach: DrainReach): void {
    this.#stopped.add(reach);
  }

  /** Returns whether the listener's direction is stopped. */
  includes(listener: Listener): boolean {
    return [...this.#stopped].some((reach) => reaches(reach, listener));
  }
}
