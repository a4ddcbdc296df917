// A compiled LocalRateLimit: the limits, the share of requests to which they apply, and the response to requests beyond them.

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
  /** Refused requests get a retry-after header. */
  readonly hasRetryAfter: boolean;
  /** Header changes of requests that are limited but not enforced, and of refusals. */
  readonly headers: CompiledHeaders;
  /** The default limit for all requests; undefined: none. */
  readonly limit: Limit | undefined;
  /** The limits for requests with certain descriptors. */
  readonly descriptors: DescriptorLimits | undefined;
  /** Requests with such descriptors also need a token of the default limit. */
  readonly alwaysUsesDefault: boolean;
  #counters: OutcomeCounters | undefined;

  /** `place` identifies the configuration in the process. Throws a BatonError for invalid headers. */
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
    this.alwaysUsesDefault = config.always_consume_default_token_bucket ?? true;
  }

  /** Returns the counters. They exist from the first call on. */
  countersFor(context: WorkerContext): OutcomeCounters {
    this.#counters ??= outcomeCounters(context, this.#statPrefix);
    return this.#counters;
  }
}

/** Header changes of requests that are limited but not enforced, and of refusals. */
export interface CompiledHeaders {
  readonly request: HeaderMutations | undefined;
  readonly response: HeaderMutations | undefined;
}

/** Compiles the configured header changes. Throws a BatonError for invalid ones. */
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
