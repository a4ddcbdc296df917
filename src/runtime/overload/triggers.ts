// Triggers: from the pressure of a resource to the state of an action.

import type { Trigger } from '../../config/generated/api.js';

/** Returns the state of one trigger under a pressure: from 0 to 1. */
export function triggerState({ scaled, threshold }: Trigger, pressure: number): number {
  if (scaled === undefined) return pressure >= Number(threshold?.value ?? 0) ? 1 : 0;
  const start = Number(scaled.scaling_threshold ?? 0);
  const end = Number(scaled.saturation_threshold ?? 0);
  if (pressure <= start) return 0;
  return pressure >= end ? 1 : (pressure - start) / (end - start);
}
