// For which traffic listeners have been stopped by POST /drain_listeners: what is added or changed there later is refused.

import type { Listener } from '../../../config/generated/api.js';
import type { DrainReach } from '../../draining/drain-manager.js';

export class StoppedDirections {
  #all = false;
  #inbound = false;

  /** All listeners have been stopped, or those for inbound traffic. */
  add(reach: DrainReach): void {
    if (reach === 'inbound') this.#inbound = true;
    else this.#all = true;
  }

  /** Whether a listener is for traffic that is no longer taken. */
  includes(listener: Listener): boolean {
    return this.#all || (this.#inbound && listener.traffic_direction === 'INBOUND');
  }
}
