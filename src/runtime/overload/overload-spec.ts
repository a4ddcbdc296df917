// Reads the bootstrap's overload manager for the workers.

import { durationMs } from '../../common/time/duration.js';
import { Action } from '../../config/fields/overload-names.js';
import type { Bootstrap, ScaleTimersOverloadActionConfig_ScaleTimer } from '../../config/generated/api.js';
import { unpack } from '../../config/schema/any.js';
import type { OverloadSpec, TimeoutMinimum, TimerType } from './overload-state.js';

const SCALE_TIMERS = 'envoy.config.overload.v3.ScaleTimersOverloadActionConfig';

/** Undefined: no action or load shed point is configured. */
export function overloadSpec({ overload_manager: manager }: Bootstrap): OverloadSpec | undefined {
  const { actions = [], loadshed_points: points = [] } = manager ?? {};
  if (actions.length + points.length === 0) return undefined;
  const reduction = actions.find(({ name }) => name === Action.ReduceTimeouts);
  const { timer_scale_factors: timers = [] } = unpack(reduction?.typed_config, SCALE_TIMERS) ?? {};
  return {
    points: points.map(({ name }) => name!),
    timers: Object.fromEntries(timers.map((timer) => [timer.timer as TimerType, minimumOf(timer)])),
  };
}

function minimumOf({
  min_scale: scale,
  min_timeout: timeout,
}: ScaleTimersOverloadActionConfig_ScaleTimer): TimeoutMinimum {
  return scale === undefined ? { ms: durationMs(timeout, 0) } : { scale: Number(scale.value ?? 0) / 100 };
}
