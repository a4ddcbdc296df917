// Stats of the overload manager.

import { defineLayout } from '../layout.js';

/** Scope `overload.<monitor>.`, for a monitor that is queried for each unit of its resource. */
export const ResourceStats = defineLayout({
  failed_updates: 'counter',
});

/** Scope `overload.<monitor>.`, for a monitor that is queried at an interval. */
export const MonitorStats = defineLayout({
  failed_updates: 'counter',
  /** In percent. */
  pressure: 'own_gauge',
  /** Updates are never late: they are synchronous. */
  skipped_updates: 'counter',
});

/** Scope `overload.<action>.` */
export const ActionStats = defineLayout({
  active: 'own_gauge',
  scale_percent: 'own_gauge',
});

/** Scope `overload.envoy.overload_actions.shrink_heap.`, in addition to ActionStats. */
export const ShrinkHeapStats = defineLayout({
  shrink_count: 'counter',
});

/** Scope `overload.<load shed point>.` */
export const LoadShedPointStats = defineLayout({
  scale_percent: 'own_gauge',
  shed_load_count: 'counter',
});

/** Scope `overload.` */
export const OverloadStats = defineLayout({
  refresh_interval_delay: 'histogram',
});

/** The prefix of a monitor, action or load shed point. */
export function overloadPrefix(name: string): string {
  return `overload.${name}.`;
}
