// LocalRateLimit, compiled: how many requests there may be, which share of them that is for, and what becomes of those beyond.

import type { LocalRateLimit, TokenBucket as TokenBucketConfig } from '../../../../config/generated/api.js';
import {
  compileHeaderMutations,
  durationMs,
  errorStatus,
  type HeaderMutations,
  OwnTokenBucket,
  type Runtime,
  type RuntimeFraction,
  type StreamInfo,
  type TokenBucket,
  TokenRate,
  type WorkerContext,
} from '../../../sdk.js';
import { type OutcomeCounters, RouteCounters } from './stats.js';

const TOO_MANY_REQUESTS = 429;
const RESOURCE_EXHAUSTED = 8;

export class LimitRules {
  readonly statPrefix: string;
  readonly status: number;
  readonly grpcStatus: number | undefined;
  readonly enabled: RuntimeFraction;
  readonly enforced: RuntimeFraction;
  readonly hasHeaders: boolean;
  readonly requestMutations: HeaderMutations | undefined;
  readonly responseMutations: HeaderMutations | undefined;
  readonly #rate: TokenRate | undefined;
  /** The name of the bucket that all workers take from. */
  readonly #name: string;
  /** By what stands for a connection, where each has a bucket of its own. */
  readonly #ofConnections: WeakMap<object, TokenBucket> | undefined;
  #shared: TokenBucket | undefined;
  #counters: OutcomeCounters | undefined;

  /** `place`: where in the process the configuration stands. Throws BatonError for headers that cannot be added. */
  constructor(config: LocalRateLimit, runtime: Runtime, where: string, place: string) {
    const bucket = config.token_bucket;
    this.statPrefix = config.stat_prefix ?? '';
    this.status = errorStatus(config.status, TOO_MANY_REQUESTS);
    this.grpcStatus = config.rate_limited_as_resource_exhausted ? RESOURCE_EXHAUSTED : undefined;
    this.enabled = runtime.fractionOf(config.filter_enabled, { numerator: 0 });
    this.enforced = runtime.fractionOf(config.filter_enforced, { numerator: 0 });
    this.hasHeaders = config.enable_x_ratelimit_headers === 'DRAFT_VERSION_03';
    this.requestMutations = compileHeaders(config, 'request_headers_to_add_when_not_enforced', where);
    this.responseMutations = compileHeaders(config, 'response_headers_to_add', where);
    this.#rate = bucket && rateOf(bucket);
    // With another rate it is another bucket.
    this.#name = JSON.stringify([place, bucket]);
    this.#ofConnections = config.local_rate_limit_per_downstream_connection ? new WeakMap() : undefined;
  }

  /** The bucket for a request; undefined: there is none, and no limit. */
  bucketFor(info: StreamInfo, context: WorkerContext): TokenBucket | undefined {
    if (this.#rate === undefined) return undefined;
    if (this.#ofConnections === undefined) return (this.#shared ??= context.tokenBucket(this.#name, this.#rate));
    const connection = info.downstream!;
    let bucket = this.#ofConnections.get(connection);
    if (bucket === undefined) this.#ofConnections.set(connection, (bucket = new OwnTokenBucket(this.#rate)));
    return bucket;
  }

  /** Of a route that counts for itself. */
  countersFor({ stats }: WorkerContext): OutcomeCounters {
    this.#counters ??= new RouteCounters(stats, this.statPrefix);
    return this.#counters;
  }
}

function rateOf({ max_tokens, tokens_per_fill, fill_interval }: TokenBucketConfig): TokenRate {
  return new TokenRate({
    maxTokens: max_tokens!,
    tokensPerFill: tokens_per_fill ?? 1,
    fillIntervalMs: durationMs(fill_interval!),
  });
}

type HeaderList = 'request_headers_to_add_when_not_enforced' | 'response_headers_to_add';

/** Throws BatonError for what no head can have. */
export function compileHeaders(config: LocalRateLimit, list: HeaderList, where: string): HeaderMutations | undefined {
  const path = where === '' ? list : `${where}.${list}`;
  return compileHeaderMutations([
    { toAdd: config[list], toRemove: undefined, where: (_list, index) => `${path}[${index}]` },
  ]);
}
