// The compiled configurations of the rate limit filter and of its routes.

import type {
  RatelimitRateLimit as FilterConfig,
  HeaderValueOption,
  RateLimitPerRoute,
} from '../../../../config/generated/api.js';
import {
  byteText,
  compileFilterLimits,
  compileHeaderMutations,
  errorStatus,
  finalStatus,
  type HeaderMutations,
  type RateLimitSelection,
  type RateLimits,
  type RuntimeFraction,
  type WorkerContext,
} from '../../../sdk.js';
import { ClusterOutcomes } from '../../common/cluster-outcomes.js';
import { LimitService } from '../../common/rate-limit/limit-service.js';

export type Outcome = 'ok' | 'error' | 'over_limit' | 'failure_mode_allowed';

const ALL = { numerator: 100 };
const NONE = { numerator: 0 };
const TOO_MANY_REQUESTS = 429;
const INTERNAL_ERROR = 500;
const RESOURCE_EXHAUSTED = 8;
const METADATA = 'envoy.filters.http.ratelimit';

/** The configuration of a filter, one per filter chain and worker. */
export class LimitFilterRules {
  readonly service: LimitService;
  readonly domain: string;
  /** Undefined: internal and external requests are limited. */
  readonly onlyInternal: boolean | undefined;
  readonly enabled: RuntimeFraction;
  readonly enforced: RuntimeFraction;
  /** The share of requests that are refused when the service fails. */
  readonly deniedOnError: RuntimeFraction;
  readonly limitedStatus: number;
  readonly limitedGrpcStatus: number | undefined;
  readonly errorStatus: number;
  readonly hasLimitHeaders: boolean;
  readonly hasRetryAfter: boolean;
  readonly hasLimitedHeader: boolean;
  readonly toLimited: HeaderMutations | undefined;
  readonly outcomes: ClusterOutcomes<Outcome>;
  readonly metadata: string;
  /** Undefined: those of the route apply. */
  readonly limits: RateLimits | undefined;
  /** The rate limits of routes that apply to requests, and those that apply at the end of their streams. */
  readonly now: RateLimitSelection;
  readonly atEnd: RateLimitSelection;
  readonly localCluster: string;
  readonly random: WorkerContext['random'];

  constructor(config: FilterConfig, { calls, node, random, runtime }: WorkerContext) {
    this.service = new LimitService(config.rate_limit_service!, config.timeout, calls);
    this.domain = byteText(config.domain!);
    this.onlyInternal = INTERNAL[config.request_type ?? ''];
    this.enabled = shareOf(runtime, config.filter_enabled, 'ratelimit.http_filter_enabled');
    this.enforced = shareOf(runtime, config.filter_enforced, 'ratelimit.http_filter_enforcing');
    this.deniedOnError = runtime.fractionOf(config.failure_mode_deny_percent, config.failure_mode_deny ? ALL : NONE);
    this.limitedStatus = errorStatus(config.rate_limited_status, TOO_MANY_REQUESTS);
    this.limitedGrpcStatus = config.rate_limited_as_resource_exhausted ? RESOURCE_EXHAUSTED : undefined;
    this.errorStatus = finalStatus(config.status_on_error, INTERNAL_ERROR);
    this.hasLimitHeaders = config.enable_x_ratelimit_headers === 'DRAFT_VERSION_03';
    this.hasRetryAfter = config.enable_retry_after_header ?? false;
    this.hasLimitedHeader = config.disable_x_envoy_ratelimited_header !== true;
    this.toLimited = compileLimitedHeaders(config.response_headers_to_add);
    this.outcomes = new ClusterOutcomes('ratelimit', config.stat_prefix ?? '');
    this.metadata = config.metadata_namespace || METADATA;
    this.limits = limitsOf(config.rate_limits, 'rate_limits');
    const keys = new Map<string, RuntimeFraction>();
    const isEnabled = (key: string) => {
      let share = keys.get(key);
      if (share === undefined) keys.set(key, (share = runtime.fraction(`ratelimit.${key}.http_filter_enabled`, ALL)));
      return share.isHit(random);
    };
    this.now = { stage: config.stage ?? 0, isAtEnd: false, isEnabled };
    this.atEnd = { ...this.now, isAtEnd: true };
    this.localCluster = node.cluster ?? '';
    this.random = random;
  }
}

const INTERNAL: { readonly [type: string]: boolean | undefined } = { internal: true, external: false };

/** Without a field of its own, a share has a runtime key that all filters use. */
function shareOf(
  runtime: WorkerContext['runtime'],
  field: FilterConfig['filter_enabled'],
  key: string,
): RuntimeFraction {
  return field === undefined ? runtime.fraction(key, ALL) : runtime.fractionOf(field, ALL);
}

/** Compiles the fields of responses to limited requests. Throws a BatonError for invalid ones. */
export function compileLimitedHeaders(list: readonly HeaderValueOption[] | undefined): HeaderMutations | undefined {
  const where = (_list: string, index: number) => `response_headers_to_add[${index}]`;
  return compileHeaderMutations([{ toAdd: list, toRemove: undefined, where }]);
}

/** The configuration of a route. */
export interface RouteRules {
  readonly ofHost: NonNullable<RateLimitPerRoute['vh_rate_limits']>;
  /** Undefined: that of the filter applies. */
  readonly domain: string | undefined;
  /** Undefined: those of the filter or of the route apply. */
  readonly limits: RateLimits | undefined;
}

/** Throws a BatonError for invalid rate limits. */
export function compileRouteRules(config: RateLimitPerRoute, where: string): RouteRules {
  const { domain, rate_limits: limits, vh_rate_limits: ofHost = 'OVERRIDE' } = config;
  return {
    ofHost,
    domain: domain ? byteText(domain) : undefined,
    limits: limitsOf(limits, where === '' ? 'rate_limits' : `${where}.rate_limits`),
  };
}

function limitsOf(configs: FilterConfig['rate_limits'], where: string): RateLimits | undefined {
  return configs === undefined || configs.length === 0 ? undefined : compileFilterLimits(configs, where);
}
