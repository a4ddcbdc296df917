// Makes user-defined names fit for names of stats.

import type { Layout } from './layout.js';

/** Replaces colons, which sinks and monitoring systems use as separators, and control characters by '_'. */
export function scopePrefix(text: string): string {
  return text.replace(/:\/{0,2}|[\0-\x1f\x7f-\x9f]/g, '_');
}

/**
 * Returns a key that distinguishes this layout's scope from others with the same prefix. Layouts under one prefix have no
 * stat name in common, so the first name suffices.
 */
export function statScopeKey(prefix: string, { entries }: Layout): string {
  return `${prefix}\n${entries[0]?.name ?? ''}`;
}
