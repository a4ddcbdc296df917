// Slow start: a host that has just been added, or has passed its health checks again, gets a growing part of its share.

import type { SlowStartConfig } from '../../config/generated/api.js';
import { type BalancerContext, durationMs, type HostList, type ImplementedTable, type RuntimeDouble } from '../sdk.js';

export const SLOW_START_ROWS = {
  'envoy.extensions.load_balancing_policies.common.v3.SlowStartConfig': {
    slow_start_window: true,
    aggression: true,
    min_weight_percent: true,
  },
} satisfies ImplementedTable;

export interface SlowStartSettings {
  readonly windowMs: number;
  /** The least part of its weight that a host has, from 0 to 1. */
  readonly minPart: number;
  /** 1: the weight grows linearly; more: faster in the beginning. */
  readonly aggression: { readonly runtimeKey: string; readonly value: number };
}

/** Returns undefined if there is no slow start. */
export function slowStartSettings(config: SlowStartConfig | undefined): SlowStartSettings | undefined {
  const windowMs = durationMs(config?.slow_start_window, 0);
  if (windowMs === 0) return undefined;
  const { aggression, min_weight_percent: min } = config!;
  return {
    windowMs,
    minPart: min === undefined ? 0.1 : Number(min.value ?? 0) / 100,
    aggression: {
      runtimeKey: aggression?.runtime_key ?? '',
      value: aggression === undefined ? 1 : Number(aggression.default_value ?? 0),
    },
  };
}

/** Returns undefined if no host of the list is in slow start: then the load balancer need not consider it. */
export function slowStart(
  settings: SlowStartSettings | undefined,
  { healthySinceMs }: HostList,
  context: BalancerContext,
): SlowStart | undefined {
  if (settings === undefined || healthySinceMs === undefined) return undefined;
  const sinceMs = context.clock.monotonicMs - settings.windowMs;
  return healthySinceMs.some((ms) => ms > sinceMs) ? new SlowStart(settings, healthySinceMs, context) : undefined;
}

export class SlowStart {
  readonly #windowMs: number;
  readonly #minPart: number;
  readonly #aggression: RuntimeDouble;
  readonly #clock: BalancerContext['clock'];
  readonly #healthySinceMs: Float64Array;

  constructor(settings: SlowStartSettings, healthySinceMs: Float64Array, { clock, runtime }: BalancerContext) {
    this.#windowMs = settings.windowMs;
    this.#minPart = settings.minPart;
    this.#aggression = runtime.double(settings.aggression.runtimeKey, settings.aggression.value);
    this.#clock = clock;
    this.#healthySinceMs = healthySinceMs;
  }

  /** Returns the part of its weight that an item of the list has now, from 0 to 1. */
  partOf(item: number): number {
    const elapsedMs = this.#clock.monotonicMs - this.#healthySinceMs[item]!;
    if (elapsedMs >= this.#windowMs) return 1;
    const { value: aggression } = this.#aggression;
    const time = Math.max(1, elapsedMs) / this.#windowMs;
    // As in Envoy, an invalid aggression counts as 1.
    const part = aggression > 0 && aggression !== 1 ? time ** (1 / aggression) : time;
    return Math.max(part, this.#minPart);
  }
}
