// Whether a listener has sockets of its own.

import type { Listener } from '../generated/api.js';

/** Returns false for a listener that only gets connections which another one passes on (use_original_dst). */
export function bindsToPort({ bind_to_port: binds = true, deprecated_v1: older }: Listener): boolean {
  return binds && (older?.bind_to_port ?? true);
}
