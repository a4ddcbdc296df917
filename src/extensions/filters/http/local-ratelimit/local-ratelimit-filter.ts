// The local rate limit filter of one request: takes tokens and allows or refuses the request.

import {
  type HeaderBlock,
  HeadersStatus,
  type HttpFilter,
  headerKey,
  ResponseFlag,
  type StreamControl,
  type TokenBucket,
  type WorkerContext,
} from '../../../sdk.js';
import type { Limit } from './limit.js';
import type { LimitRules } from './rules.js';

const LIMIT = headerKey('x-ratelimit-limit');
const REMAINING = headerKey('x-ratelimit-remaining');
const RESET = headerKey('x-ratelimit-reset');
const RETRY_AFTER = headerKey('retry-after');

const enum Outcome {
  Passes,
  /** Only limits in shadow mode had no token. */
  Shadowed,
  Limited,
}

export class LocalRateLimitFilter implements HttpFilter {
  readonly #stream: StreamControl;
  readonly #rules: LimitRules;
  readonly #context: WorkerContext;
  /** The bucket that the response's x-ratelimit headers describe. */
  #reported: TokenBucket | undefined;
  #hasHeaders: boolean;
  /** The bucket that had no token. */
  #empty: TokenBucket | undefined;

  constructor(stream: StreamControl, rules: LimitRules, context: WorkerContext) {
    this.#stream = stream;
    this.#rules = rules;
    this.#hasHeaders = rules.hasHeaders;
    this.#context = context;
  }

  decodeHeaders(headers: HeaderBlock): HeadersStatus {
    const { random } = this.#context;
    const rules = this.#rules;
    if (!rules.enabled.isHit(random)) return HeadersStatus.Continue;
    const counters = rules.countersFor(this.#context);
    counters.enabled.increment();
    const outcome = this.#take(headers);
    if (outcome === Outcome.Passes) {
      counters.ok.increment();
      return HeadersStatus.Continue;
    }
    counters.rateLimited.increment();
    if (outcome === Outcome.Shadowed) {
      counters.shadow.increment();
      return HeadersStatus.Continue;
    }
    if (!rules.enforced.isHit(random)) {
      rules.headers.request?.apply(headers, this.#stream.info);
      return HeadersStatus.Continue;
    }
    counters.enforced.increment();
    this.#refuse();
    return HeadersStatus.StopIteration;
  }

  encodeHeaders(headers: HeaderBlock): HeadersStatus {
    if (this.#reported === undefined) return HeadersStatus.Continue;
    const nowMs = this.#context.clock.monotonicMs;
    headers.add(LIMIT, String(this.#reported.maxTokens));
    headers.add(REMAINING, String(this.#reported.tokens(nowMs)));
    headers.add(RESET, secondsToToken(this.#reported, nowMs));
    return HeadersStatus.Continue;
  }

  /** Takes a token from each bucket that applies to the request. */
  #take(headers: HeaderBlock): Outcome {
    const { alwaysUsesDefault, descriptors, limit } = this.#rules;
    const limits = descriptors?.limitsFor(headers, this.#stream, this.#context.node.cluster ?? '');
    if (limits === undefined || limits.length === 0)
      return limit === undefined || this.#takeFrom(limit) ? Outcome.Passes : Outcome.Limited;
    let outcome = Outcome.Passes;
    const shown = limits[0]!.headers;
    if (shown !== 'UNSPECIFIED') this.#hasHeaders = shown === 'DRAFT_VERSION_03';
    for (const { hits, limit: each } of limits) {
      if (this.#takeFrom(each, hits)) continue;
      if (!each.isShadow) return Outcome.Limited;
      outcome = Outcome.Shadowed;
    }
    if (limit !== undefined && alwaysUsesDefault && !this.#takeFrom(limit)) outcome = Outcome.Limited;
    // As in Envoy, the headers describe the slowest limit that matches the request's descriptors.
    this.#reportOn(limits[0]!.limit);
    return outcome;
  }

  #takeFrom(limit: Limit, count?: number): boolean {
    const bucket = this.#reportOn(limit);
    // As in Envoy, a request without hits is beyond its limit.
    if (count !== 0 && bucket.take(this.#context.clock.monotonicMs, count)) return true;
    this.#empty = bucket;
    return false;
  }

  #reportOn(limit: Limit): TokenBucket {
    const bucket = limit.bucketFor(this.#stream.info.downstream!, this.#context);
    if (this.#hasHeaders) this.#reported = bucket;
    return bucket;
  }

  #refuse(): void {
    const { grpcStatus, hasRetryAfter, headers: own, status } = this.#rules;
    const { info } = this.#stream;
    const retryAfter = hasRetryAfter ? secondsToToken(this.#empty!, this.#context.clock.monotonicMs) : undefined;
    this.#stream.sendLocalReply({
      status,
      body: 'local_rate_limited',
      details: 'local_rate_limited',
      flags: ResponseFlag.RateLimited,
      grpcStatus,
      editHeaders: (headers) => {
        if (retryAfter !== undefined) headers.add(RETRY_AFTER, retryAfter);
        own.response?.applyToResponse(headers, info);
      },
    });
  }
}

function secondsToToken(bucket: TokenBucket, nowMs: number): string {
  return String(Math.ceil(bucket.msToToken(nowMs) / 1000));
}
