// Stats of the overload manager.

import { defineLayout } from '../layout.js';

/** Scope `overload.<monitor>.`, of a monitor that is asked for each piece of its resource */
export const ResourceStats = defineLayout({
  failed_updates: 'counter',
});

export function resourcePrefix(monitor: string): string {
  return `overload.${monitor}.`;
}
