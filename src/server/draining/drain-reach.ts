// The listeners that a drain or a stop covers.

import type { Listener } from '../../config/generated/api.js';

/** All listeners, or those with traffic_direction INBOUND. */
export type DrainReach = 'all' | 'inbound';

export function reaches(reach: DrainReach, listener: Listener): boolean {
  return reach === 'all' || listener.traffic_direction === 'INBOUND';
}
