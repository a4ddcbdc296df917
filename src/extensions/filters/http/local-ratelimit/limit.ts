// One limit: a token bucket that all workers share, or one for each connection.

import type { TokenBucket as TokenBucketConfig } from '../../../../config/generated/api.js';
import { durationMs, OwnTokenBucket, type TokenBucket, TokenRate, type WorkerContext } from '../../../sdk.js';

export class Limit {
  /** The fill rate. */
  readonly tokensPerSecond: number;
  readonly #rate: TokenRate;
  /** The name of the shared bucket. */
  readonly #name: string;
  /** Buckets by connection, if each connection has its own. */
  readonly #perConnection: WeakMap<object, TokenBucket> | undefined;
  #shared: TokenBucket | undefined;

  /** A request without token is counted and allowed. */
  readonly isShadow: boolean;

  /** `place` identifies the limit in the process, together with the rate. */
  constructor(config: TokenBucketConfig, place: unknown, isPerConnection: boolean, isShadow = false) {
    this.isShadow = isShadow;
    const fillIntervalMs = durationMs(config.fill_interval!);
    const tokensPerFill = config.tokens_per_fill ?? 1;
    this.tokensPerSecond = (1000 * tokensPerFill) / fillIntervalMs;
    this.#rate = new TokenRate({ maxTokens: config.max_tokens ?? 0, tokensPerFill, fillIntervalMs });
    this.#name = JSON.stringify([place, config]);
    this.#perConnection = isPerConnection ? new WeakMap() : undefined;
  }

  /** Returns the bucket for requests of this connection. */
  bucketFor(connection: object, context: WorkerContext): TokenBucket {
    if (this.#perConnection === undefined) return (this.#shared ??= context.tokenBucket(this.#name, this.#rate));
    let bucket = this.#perConnection.get(connection);
    if (bucket === undefined) this.#perConnection.set(connection, (bucket = new OwnTokenBucket(this.#rate)));
    return bucket;
  }
}
