// A token bucket: limits bursts and the long-term rate of requests. Its whole state is the time at which it is full again, so
// that a bucket shared by threads is a single number.

/** The limits of a bucket. Tokens are added evenly, not all at the end of an interval. */
export interface TokenBucketLimits {
  readonly maxTokens: number;
  /** Tokens added per interval. */
  readonly tokensPerFill: number;
  readonly fillIntervalMs: number;
}

/** Times are in ms of one clock; for buckets that threads share that is CLOCK_MONOTONIC. */
export interface TokenBucket {
  readonly maxTokens: number;
  /** Takes `count` tokens, 1 by default. Returns false, and takes none, when there are fewer. */
  take(nowMs: number, count?: number): boolean;
  /** Returns the number of whole tokens. */
  tokens(nowMs: number): number;
  /** Returns the ms until a token is available; 0: one is. */
  msToToken(nowMs: number): number;
}

/** Returned by TokenRate.take() when there is no token. */
export const NO_TOKEN = -1;

export class TokenRate {
  readonly maxTokens: number;
  readonly #msPerToken: number;
  readonly #msToFill: number;
  /** Tolerates rounding errors: a token may lack one thousandth. */
  readonly #slackMs: number;

  constructor({ maxTokens, tokensPerFill, fillIntervalMs }: TokenBucketLimits) {
    this.maxTokens = maxTokens;
    this.#msPerToken = fillIntervalMs / tokensPerFill;
    this.#msToFill = this.#msPerToken * maxTokens;
    this.#slackMs = this.#msPerToken / 1000;
  }

  /** Takes tokens from a bucket that is full at `fullAtMs`. Returns when it is full then; NO_TOKEN: it has too few. */
  take(fullAtMs: number, nowMs: number, count = 1): number {
    const nextMs = Math.max(fullAtMs, nowMs) + this.#msPerToken * count;
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

/** A bucket that one thread uses. It is full at first. */
export class OwnTokenBucket implements TokenBucket {
  readonly #rate: TokenRate;
  #fullAtMs = 0;

  constructor(rate: TokenRate) {
    this.#rate = rate;
  }

  get maxTokens(): number {
    return this.#rate.maxTokens;
  }

  take(nowMs: number, count = 1): boolean {
    const fullAtMs = this.#rate.take(this.#fullAtMs, nowMs, count);
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
