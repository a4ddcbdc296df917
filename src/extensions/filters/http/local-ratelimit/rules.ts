// LocalRateLimit, compiled: how many requests there may be, which share of them that is for, and what becomes of those beyond.

import type { HeaderValueOption, LocalRateLimit } from '../../../../config/generated/api.js';
import {
  compileHeaderMutations,
  errorStatus,
  type HeaderMutations,
  type Runtime,
  type RuntimeFraction,
  type WorkerContext,
} from '../../../sdk.js';
import { DescriptorLimits } from './descriptors.js';
import { Limit } from './limit.js';
import { type OutcomeCounters, outcomeCounters } from './stats.js';

const TOO_MANY_REQUESTS = 429;
const RESOURCE_EXHAUSTED = 8;

export class LimitRules {
  readonly #statPrefix: string;
  readonly status: number;
  readonly grpcStatus: number | undefined;
  readonly enabled: RuntimeFraction;
  readonly enforced: RuntimeFraction;
  readonly hasHeaders: boolean;
  /** Refused requests are told when to come again. */
  readonly hasRetryAfter: boolean;
  /** What requests that go on, and answers, get. */
  readonly headers: CompiledHeaders;
  /** For all requests; undefined: there is none. */
  readonly limit: Limit | undefined;
  /** For requests of certain descriptors. */
  readonly descriptors: DescriptorLimits | undefined;
  /** Requests of such descriptors need a token of both. */
  readonly alwaysTakesOwn: boolean;
  #counters: OutcomeCounters | undefined;

  /** `place`: where in the process the configuration stands. Throws BatonError for headers that cannot be added. */
  constructor(config: LocalRateLimit, runtime: Runtime, where: string, place: string) {
    const bucket = config.token_bucket;
    this.#statPrefix = config.stat_prefix!;
    this.status = errorStatus(config.status, TOO_MANY_REQUESTS);
    this.grpcStatus = config.rate_limited_as_resource_exhausted ? RESOURCE_EXHAUSTED : undefined;
    this.enabled = runtime.fractionOf(config.filter_enabled, { numerator: 0 });
    this.enforced = runtime.fractionOf(config.filter_enforced, { numerator: 0 });
    this.hasHeaders = config.enable_x_ratelimit_headers === 'DRAFT_VERSION_03';
    this.hasRetryAfter = config.enable_retry_after_header ?? false;
    this.headers = compileHeaders(config, where);
    this.limit = bucket && new Limit(bucket, place, config.local_rate_limit_per_downstream_connection ?? false);
    this.descriptors = DescriptorLimits.of(config, place);
    this.alwaysTakesOwn = config.always_consume_default_token_bucket ?? true;
  }

  /** Where it is counted; the numbers exist from the first call on. */
  countersFor(context: WorkerContext): OutcomeCounters {
    this.#counters ??= outcomeCounters(context, this.#statPrefix);
    return this.#counters;
  }
}

/** What requests that go on, and answers, get. */
export interface CompiledHeaders {
  readonly request: HeaderMutations | undefined;
  readonly response: HeaderMutations | undefined;
}

/** Throws BatonError for what no head can have. */
export function compileHeaders(config: LocalRateLimit, where: string): CompiledHeaders {
  const at = (list: string) => (where === '' ? list : `${where}.${list}`);
  return {
    request: compileList(
      config.request_headers_to_add_when_not_enforced,
      at('request_headers_to_add_when_not_enforced'),
    ),
    response: compileList(config.response_headers_to_add, at('response_headers_to_add')),
  };
}

function compileList(list: readonly HeaderValueOption[] | undefined, path: string): HeaderMutations | undefined {
  return compileHeaderMutations([{ toAdd: list, toRemove: undefined, where: (_list, index) => `${path}[${index}]` }]);
}
