// How what somebody has named becomes part of the names of stats.

import type { Layout } from './layout.js';

/** Replaces colons, with which sinks and monitoring systems separate, and control characters by '_'. */
export function scopePrefix(text: string): string {
  return text.replace(/:\/{0,2}|[\0-\x1f\x7f-\x9f]/g, '_');
}

/**
 * Tells the scope of this layout from others with the same prefix: of layouts that share one, no two have a stat of the same name, so that
 * the first name is enough.
 */
export function statScopeKey(prefix: string, { entries }: Layout): string {
  return `${prefix}\n${entries[0]?.name ?? ''}`;
}
