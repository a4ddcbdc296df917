// A token bucket: how many requests there may be at once, and how many in the long run. What there is to know of one is a single
// time, that at which it is full again; so a bucket that several threads take from is one number.

/** What a bucket is like. Tokens come one by one, evenly, and not in heaps when an interval ends. */
export interface TokenBucketLimits {
  readonly maxTokens: number;
  /** So many come in each interval. */
  readonly tokensPerFill: number;
  readonly fillIntervalMs: number;
}

/** Times are those of one clock, in ms: for buckets that threads share, of CLOCK_MONOTONIC. */
export interface TokenBucket {
  readonly maxTokens: number;
  /** Takes one token if there is one. */
  take(nowMs: number): boolean;
  /** Whole tokens that there are. */
  tokens(nowMs: number): number;
  /** How long it is until there is one; 0: there is. */
  msToToken(nowMs: number): number;
}

/** What take() gives when there is no token. */
export const NO_TOKEN = -1;

export class TokenRate {
  readonly maxTokens: number;
  readonly #msPerToken: number;
  readonly #msToFill: number;
  /** Sums of fractions are not exact: what lacks a thousandth of a token is one. */
  readonly #slackMs: number;

  constructor({ maxTokens, tokensPerFill, fillIntervalMs }: TokenBucketLimits) {
    this.maxTokens = maxTokens;
    this.#msPerToken = fillIntervalMs / tokensPerFill;
    this.#msToFill = this.#msPerToken * maxTokens;
    this.#slackMs = this.#msPerToken / 1000;
  }

  /** When a bucket that is full at `fullAtMs` is so after one token is taken from it now; NO_TOKEN: it has none. */
  take(fullAtMs: number, nowMs: number): number {
    const nextMs = Math.max(fullAtMs, nowMs) + this.#msPerToken;
    return nextMs - nowMs > this.#msToFill + this.#slackMs ? NO_TOKEN : nextMs;
  }

  /** See TokenBucket. */
  tokens(fullAtMs: number, nowMs: number): number {
    const missing = (Math.max(fullAtMs - nowMs, 0) - this.#slackMs) / this.#msPerToken;
    return Math.max(0, Math.min(this.maxTokens, Math.floor(this.maxTokens - missing)));
  }

  /** See TokenBucket. */
  msToToken(fullAtMs: number, nowMs: number): number {
    const missingMs = Math.max(fullAtMs - nowMs, 0) + this.#msPerToken - this.#msToFill;
    return missingMs <= this.#slackMs ? 0 : missingMs;
  }
}

/** A bucket that one thread takes from. It is full at first. */
export class OwnTokenBucket implements TokenBucket {
  readonly #rate: TokenRate;
  #fullAtMs = 0;

  constructor(rate: TokenRate) {
    this.#rate = rate;
  }

  get maxTokens(): number {
    return this.#rate.maxTokens;
  }

  take(nowMs: number): boolean {
    const fullAtMs = this.#rate.take(this.#fullAtMs, nowMs);
    if (fullAtMs === NO_TOKEN) return false;
    this.#fullAtMs = fullAtMs;
    return true;
  }

  tokens(nowMs: number): number {
    return this.#rate.tokens(this.#fullAtMs, nowMs);
  }

  msToToken(nowMs: number): number {
    return this.#rate.msToToken(this.#fullAtMs, nowMs);
  }
}
