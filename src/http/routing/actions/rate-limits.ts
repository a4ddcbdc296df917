// rate_limits of routes, virtual hosts and rate limit filters: the descriptors of requests. A descriptor is a list of entries, each a
// key and a value.

import { compileFormat, type Format } from '../../../access-log/formats/format.js';
import { BatonError, buildEach, messageOf } from '../../../common/errors/errors.js';
import { decimalOf } from '../../../common/text/decimal.js';
import type {
  RateLimit,
  RateLimit_HitsAddend,
  RateLimit_Override,
  RateLimit_XRateLimitOption as RateLimitHeaders,
  RateLimitUnit,
  VhRateLimitsOptions,
} from '../../../config/generated/api.js';
import { valueAt } from '../matching/value-rule.js';
import { type Action, compileAction, type DescribedRequest } from './rate-limit-actions.js';

export type { DescribedRequest } from './rate-limit-actions.js';

/** What a rate limit says of a request. */
export interface Descriptor {
  /** Keys and values in turn, with one character per byte. */
  readonly entries: readonly string[];
  /** Replaces the limit that the service has for the descriptor. */
  readonly limit: LimitOverride | undefined;
  /** Undefined: the number of the whole request. */
  readonly hits: number | undefined;
  readonly areHitsNegative: boolean;
  /** Whether responses describe the limit; UNSPECIFIED: the filter decides. */
  readonly headers: RateLimitHeaders;
}

export interface LimitOverride {
  readonly requestsPerUnit: number;
  readonly unit: RateLimitUnit;
}

/** Which rate limits of a route or filter apply now. */
export interface Selection {
  readonly stage: number;
  /** Those that apply when the stream has ended, or those that apply to the request; undefined: both. */
  readonly isAtEnd: boolean | undefined;
  /** Returns whether limits with this disable_key apply. */
  isEnabled(disableKey: string): boolean;
}

/** Returns one entry of a descriptor as text. Descriptors are equal if and only if their texts are, whatever bytes clients send. */
export function entryText(key: string, value: string): string {
  return `${key.length},${value.length}:${key}${value}`;
}

/** The rate limits of a route and its virtual host. */
export class RouteRateLimits {
  readonly #own: CompiledLimits;
  readonly #ofHost: CompiledLimits;
  readonly #includesHost: boolean;
  /** Some apply when the stream has ended. */
  readonly areAtEnd: boolean;

  /** Returns undefined if neither has rate limits. */
  static of(
    own: CompiledLimits,
    ofHost: CompiledLimits,
    includesHost: boolean | undefined,
  ): RouteRateLimits | undefined {
    return own.length + ofHost.length === 0 ? undefined : new RouteRateLimits(own, ofHost, includesHost ?? false);
  }

  private constructor(own: CompiledLimits, ofHost: CompiledLimits, includesHost: boolean) {
    this.#own = own;
    this.#ofHost = ofHost;
    this.#includesHost = includesHost;
    this.areAtEnd = [...own, ...ofHost].some(({ isAtEnd }) => isAtEnd);
  }

  /** Returns the descriptors of a request. `ofHost`: when those of the virtual host are added to those of the route. */
  descriptors(selection: Selection, ofHost: VhRateLimitsOptions, request: DescribedRequest): Descriptor[] {
    const found: Descriptor[] = [];
    addDescriptors(this.#own, selection, request, found);
    const includesHost = this.#includesHost || ofHost === 'INCLUDE' || (ofHost !== 'IGNORE' && this.#own.length === 0);
    if (includesHost) addDescriptors(this.#ofHost, selection, request, found);
    return found;
  }
}

export type CompiledLimits = readonly CompiledLimit[];

export interface CompiledLimit {
  readonly stage: number;
  readonly disableKey: string;
  readonly isAtEnd: boolean;
  readonly actions: readonly Action[];
  readonly limitOf: ((request: DescribedRequest) => LimitOverride | undefined) | undefined;
  /** Undefined: the descriptor has no number of hits. Its result is undefined if the descriptor does not apply. */
  readonly hitsOf: ((request: DescribedRequest) => number | undefined) | undefined;
  readonly areHitsNegative: boolean;
  readonly headers: RateLimitHeaders;
}

/**
 * Compiles the rate limits of a route or virtual host. As in Envoy, these do not obey hits_addend. Throws BatonError for invalid ones;
 * `where` is the path of the list.
 */
export function compileRateLimits(configs: readonly RateLimit[] | undefined, where: string): CompiledLimits {
  return buildEach(configs ?? [], (config, index) => compileLimit(config, `${where}[${index}]`));
}

/** Compiles the rate limits of a filter, in the same way. They have no stage and no disable_key. */
export function compileFilterLimits(configs: readonly RateLimit[] | undefined, where: string): CompiledLimits {
  return buildEach(configs ?? [], (config, index) => {
    const at = `${where}[${index}]`;
    for (const field of ['stage', 'disable_key'] as const) {
      const message = 'rate limits of a filter have none';
      if (config[field]) throw new BatonError('CONFIG_INVALID', message, { where: `${at}.${field}` });
    }
    const hitsOf = config.hits_addend && hitsReader(config.hits_addend, `${at}.hits_addend`);
    return { ...compileLimit(config, at), hitsOf, areHitsNegative: config.hits_addend?.is_negative_hits ?? false };
  });
}

function compileLimit(config: RateLimit, where: string): CompiledLimit {
  return {
    stage: config.stage ?? 0,
    disableKey: config.disable_key ?? '',
    isAtEnd: config.apply_on_stream_done ?? false,
    actions: buildEach(config.actions ?? [], (action, at) => compileAction(action, `${where}.actions[${at}]`)),
    limitOf: config.limit && overrideReader(config.limit),
    hitsOf: undefined,
    areHitsNegative: false,
    headers: config.x_ratelimit_option ?? 'UNSPECIFIED',
  };
}

/** Adds the descriptors of `limits` that apply to the request. */
export function addDescriptors(
  limits: CompiledLimits,
  { isAtEnd, isEnabled, stage }: Selection,
  request: DescribedRequest,
  found: Descriptor[],
): void {
  for (const limit of limits) {
    if (limit.stage !== stage || (isAtEnd !== undefined && limit.isAtEnd !== isAtEnd)) continue;
    if (limit.disableKey !== '' && !isEnabled(limit.disableKey)) continue;
    const entries: string[] = [];
    if (!limit.actions.every((action) => action(request, entries))) continue;
    const hits = limit.hitsOf?.(request);
    if (limit.hitsOf !== undefined && hits === undefined) continue;
    const { areHitsNegative, headers } = limit;
    found.push({ entries, limit: limit.limitOf?.(request), hits, areHitsNegative, headers });
  }
}

const UNITS: ReadonlySet<string> = new Set(['UNKNOWN', 'SECOND', 'MINUTE', 'HOUR', 'DAY', 'MONTH', 'YEAR']);

function overrideReader(config: RateLimit_Override): (request: DescribedRequest) => LimitOverride | undefined {
  const { dynamic_metadata: dynamic, rate_limit: fixed } = config;
  if (fixed !== undefined) {
    const limit = { requestsPerUnit: fixed.requests_per_unit ?? 0, unit: fixed.unit ?? 'UNKNOWN' };
    return () => limit;
  }
  const namespace = dynamic?.metadata_key?.key ?? '';
  const path = (dynamic?.metadata_key?.path ?? []).map(({ key = '' }) => key);
  return ({ info }) => {
    const struct = info.dynamicMetadata?.get(namespace);
    const value = struct && valueAt(struct, path);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
    const { requests_per_unit: count, unit } = value as { readonly [key: string]: unknown };
    if (typeof count !== 'number' || typeof unit !== 'string' || !UNITS.has(unit)) return undefined;
    // As in Envoy, a negative number wraps around.
    return { requestsPerUnit: Math.trunc(count) >>> 0, unit: unit as RateLimitUnit };
  };
}

const MAX_HITS = 1_000_000_000;

function hitsReader(config: RateLimit_HitsAddend, where: string): (request: DescribedRequest) => number | undefined {
  const { format = '', number } = config;
  if ((format === '') === (number === undefined))
    throw new BatonError('CONFIG_INVALID', 'it must have either a number or a format', { where });
  if (number !== undefined) {
    const hits = Number(number);
    return () => hits;
  }
  const compiled = hitsFormat(format, `${where}.format`);
  return ({ info }) => {
    const hits = decimalOf(compiled.text(info).trim());
    return hits >= 0 && hits <= MAX_HITS ? Math.trunc(hits) : undefined;
  };
}

function hitsFormat(format: string, where: string): Format {
  const fail = (message: string, cause?: unknown) => new BatonError('CONFIG_INVALID', message, { where, cause });
  if (!/^%[^%]+%$/.test(format)) throw fail('it must be one operator, such as %BYTES_SENT%');
  try {
    return compileFormat(format);
  } catch (error) {
    throw fail(messageOf(error), error);
  }
}
