// Whether a listener has sockets of its own.

import type { Listener } from '../generated/api.js';

/** Returns false for an internal listener, and for one that only gets connections which another one passes on (use_original_dst). */
export function bindsToPort({
  bind_to_port: binds = true,
  deprecated_v1: older,
  internal_listener,
}: Listener): boolean {
  return binds && (older?.bind_to_port ?? true) && internal_listener === undefined;
}
