// Limits for requests with certain descriptors, which rate_limits of routes and virtual hosts create.

import type {
  LocalRateLimit,
  LocalRateLimitDescriptor,
  VhRateLimitsOptions,
} from '../../../../config/generated/api.js';
import { byteText, entryText, type HeaderBlock, type StreamControl } from '../../../sdk.js';
import { DynamicLimits, hasWildcard } from './dynamic-limits.js';
import { Limit } from './limit.js';

const NONE: readonly Limit[] = [];

export class DescriptorLimits {
  readonly #stage: number;
  readonly #virtualHostMode: VhRateLimitsOptions;
  /** Keys: descriptorText(). */
  readonly #limits: ReadonlyMap<string, Limit>;

  readonly #dynamic: DynamicLimits | undefined;

  /** Returns undefined if there are no descriptors. `place`: see LimitRules. */
  static of(config: LocalRateLimit, place: string): DescriptorLimits | undefined {
    return (config.descriptors ?? []).length === 0 ? undefined : new DescriptorLimits(config, place);
  }

  private constructor(config: LocalRateLimit, place: string) {
    const isPerConnection = config.local_rate_limit_per_downstream_connection ?? false;
    this.#stage = config.stage ?? 0;
    this.#virtualHostMode = config.vh_rate_limits ?? 'OVERRIDE';
    this.#limits = new Map(
      config
        .descriptors!.filter((descriptor) => !hasWildcard(descriptor))
        .map((descriptor) => {
          const text = descriptorText(descriptor);
          return [text, new Limit(descriptor.token_bucket!, [place, text], isPerConnection, descriptor.shadow_mode)];
        }),
    );
    this.#dynamic = DynamicLimits.of(config, place);
  }

  /** Returns the limits of this request, the slowest first: when it is exhausted, no token of the others was taken. */
  limitsFor(headers: HeaderBlock, stream: StreamControl): readonly Limit[] {
    const route = stream.route();
    if (route?.rateLimits === undefined) return NONE;
    const { clusterName, rateLimits } = route;
    const request = { headers, info: stream.info, clusterName };
    const found = new Set<Limit>();
    for (const text of rateLimits.descriptors(this.#stage, this.#virtualHostMode, request)) {
      const limit = this.#limits.get(text) ?? this.#dynamic?.limitFor(text);
      if (limit !== undefined) found.add(limit);
    }
    return [...found].sort((one, other) => one.tokensPerSecond - other.tokensPerSecond);
  }
}

/** Returns a key: equal for equal descriptors, and equal to the text that RouteRateLimits computes for a request. */
export function descriptorText({ entries = [] }: LocalRateLimitDescriptor): string {
  return entries.map(({ key, value }) => entryText(byteText(key ?? ''), byteText(value ?? ''))).join('');
}
