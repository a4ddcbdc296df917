// The local rate limit of one request: it takes a token, and goes on or is answered.

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
import type { LimitRules } from './rules.js';
import type { OutcomeCounters } from './stats.js';

const LIMIT = headerKey('x-ratelimit-limit');
const REMAINING = headerKey('x-ratelimit-remaining');
const RESET = headerKey('x-ratelimit-reset');

export class LocalRateLimitFilter implements HttpFilter {
  readonly #stream: StreamControl;
  readonly #rules: LimitRules;
  readonly #counters: OutcomeCounters;
  readonly #context: WorkerContext;
  /** What the response tells of. */
  #told: TokenBucket | undefined;

  constructor(stream: StreamControl, rules: LimitRules, counters: OutcomeCounters, context: WorkerContext) {
    this.#stream = stream;
    this.#rules = rules;
    this.#counters = counters;
    this.#context = context;
  }

  decodeHeaders(headers: HeaderBlock): HeadersStatus {
    const { clock, random } = this.#context;
    const rules = this.#rules;
    if (!rules.enabled.isHit(random)) return HeadersStatus.Continue;
    this.#counters.count('enabled');
    const bucket = rules.bucketFor(this.#stream.info, this.#context);
    if (rules.hasHeaders) this.#told = bucket;
    if (bucket === undefined || bucket.take(clock.monotonicMs)) {
      this.#counters.count('ok');
      return HeadersStatus.Continue;
    }
    this.#counters.count('rate_limited');
    if (!rules.enforced.isHit(random)) {
      rules.requestMutations?.apply(headers, this.#stream.info);
      return HeadersStatus.Continue;
    }
    this.#counters.count('enforced');
    this.#refuse();
    return HeadersStatus.StopIteration;
  }

  encodeHeaders(headers: HeaderBlock): HeadersStatus {
    if (this.#told === undefined) return HeadersStatus.Continue;
    const nowMs = this.#context.clock.monotonicMs;
    headers.add(LIMIT, String(this.#told.maxTokens));
    headers.add(REMAINING, String(this.#told.tokens(nowMs)));
    headers.add(RESET, String(Math.ceil(this.#told.msToToken(nowMs) / 1000)));
    return HeadersStatus.Continue;
  }

  #refuse(): void {
    const { grpcStatus, responseMutations, status } = this.#rules;
    const { info } = this.#stream;
    this.#stream.sendLocalReply({
      status,
      body: 'local_rate_limited',
      details: 'local_rate_limited',
      flags: ResponseFlag.RateLimited,
      grpcStatus,
      editHeaders: (headers) => responseMutations?.applyToResponse(headers, info),
    });
  }
}
