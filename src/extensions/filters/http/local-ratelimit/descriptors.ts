// Limits for requests with certain descriptors, which rate_limits of the filter, of routes and of virtual hosts create.

import type {
  LocalRateLimit,
  LocalRateLimitDescriptor,
  VhRateLimitsOptions,
} from '../../../../config/generated/api.js';
import {
  addDescriptors,
  byteText,
  type ClusterReference,
  compileFilterLimits,
  type DescribedRequest,
  entryText,
  type HeaderBlock,
  type RateLimitDescriptor,
  type RateLimitSelection,
  type RateLimits,
  type Route,
  type StreamControl,
} from '../../../sdk.js';
import { DynamicLimits, hasWildcard } from './dynamic-limits.js';
import { Limit } from './limit.js';

/** A limit that applies to a request. */
export interface AppliedLimit {
  readonly limit: Limit;
  /** Tokens that the request takes. */
  readonly hits: number;
  /** Whether the response describes the limit; UNSPECIFIED: the filter decides. */
  readonly headers: RateLimitDescriptor['headers'];
}

const NONE: readonly AppliedLimit[] = [];

export class DescriptorLimits {
  readonly #selection: RateLimitSelection;
  readonly #virtualHostMode: VhRateLimitsOptions;
  /** Undefined: those of the route apply. */
  readonly #own: RateLimits | undefined;
  /** Keys: descriptorText(). */
  readonly #limits: ReadonlyMap<string, Limit>;

  readonly #dynamic: DynamicLimits | undefined;

  /** Returns undefined if there are no descriptors. `place`: see LimitRules. */
  static of(config: LocalRateLimit, place: string): DescriptorLimits | undefined {
    return (config.descriptors ?? []).length === 0 ? undefined : new DescriptorLimits(config, place);
  }

  private constructor(config: LocalRateLimit, place: string) {
    const isPerConnection = config.local_rate_limit_per_downstream_connection ?? false;
    // As in Envoy, limits with disable_key are for rate limit services.
    this.#selection = {
      stage: config.rate_limits?.length ? 0 : (config.stage ?? 0),
      isAtEnd: undefined,
      isEnabled: () => false,
    };
    this.#own = (config.rate_limits ?? []).length === 0 ? undefined : compileFilterLimits(config.rate_limits, '');
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
  limitsFor(headers: HeaderBlock, stream: StreamControl, localCluster: string): readonly AppliedLimit[] {
    const route = stream.route();
    if (route === undefined || (this.#own === undefined && route.rateLimits === undefined)) return NONE;
    const { cluster, clusterName, metadata, rateLimits } = route;
    const request: DescribedRequest = {
      headers,
      info: stream.info,
      clusterName,
      clusterMetadata: (cluster as ClusterReference | undefined)?.current?.spec.metadata,
      routeMetadata: metadata,
      localCluster,
    };
    const found = new Map<Limit, AppliedLimit>();
    for (const { entries, headers: shown, hits = 1 } of this.#describe(rateLimits, request)) {
      const text = textOf(entries);
      const limit = this.#limits.get(text) ?? this.#dynamic?.limitFor(entries, text);
      if (limit !== undefined && !found.has(limit)) found.set(limit, { limit, hits, headers: shown });
    }
    return [...found.values()].sort((one, other) => one.limit.tokensPerSecond - other.limit.tokensPerSecond);
  }

  #describe(ofRoute: Route<unknown>['rateLimits'], request: DescribedRequest): readonly RateLimitDescriptor[] {
    if (this.#own === undefined) return ofRoute!.descriptors(this.#selection, this.#virtualHostMode, request);
    const found: RateLimitDescriptor[] = [];
    addDescriptors(this.#own, this.#selection, request, found);
    return found;
  }
}

/** Returns a key: equal for equal descriptors, and equal to that of the descriptor of a request. */
export function descriptorText({ entries = [] }: LocalRateLimitDescriptor): string {
  return entries.map(({ key, value }) => entryText(byteText(key ?? ''), byteText(value ?? ''))).join('');
}

function textOf(entries: readonly string[]): string {
  let text = '';
  for (let index = 0; index < entries.length; index += 2) text += entryText(entries[index]!, entries[index + 1]!);
  return text;
}
