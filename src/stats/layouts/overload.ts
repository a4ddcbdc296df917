// Stats of the overload manager.

import { defineLayout } from '../layout.js';

/** Scope `overload.<monitor>.`, for a monitor that is queried for each unit of its resource. */
export const ResourceStats = defineLayout({
  failed_updates: 'counter',
});

export function resourcePrefix(monitor: string): string {
  return `overload.${monitor}.`;
}
