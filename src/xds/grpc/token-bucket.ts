// A rate limit: each event takes a token, and tokens return at a steady rate. Full at first.

export class TokenBucket {
  readonly #maxTokens: number;
  readonly #perMs: number;
  #tokens: number;
  #filledMs: number;

  constructor(maxTokens: number, perSecond: number, nowMs: number) {
    this.#maxTokens = maxTokens;
    this.#perMs = perSecond / 1000;
    this.#tokens = maxTokens;
    this.#filledMs = nowMs;
  }

  /** Takes a token. Returns false when there is none. */
  take(nowMs: number): boolean {
    this.#tokens = Math.min(this.#maxTokens, this.#tokens + (nowMs - this.#filledMs) * this.#perMs);
    this.#filledMs = nowMs;
    if (this.#tokens < 1) return false;
    this.#tokens--;
    return true;
  }

  /** Ms until a token is available, as of the last take(). */
  get waitMs(): number {
    return Math.max(0, (1 - this.#tokens) / this.#perMs);
  }
}
