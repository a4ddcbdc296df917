// One limit: a bucket that all workers take from, or one for each connection.

import type { TokenBucket as TokenBucketConfig } from '../../../../config/generated/api.js';
import { durationMs, OwnTokenBucket, type TokenBucket, TokenRate, type WorkerContext } from '../../../sdk.js';

export class Limit {
  /** Tokens that come in a second. */
  readonly tokensPerSecond: number;
  readonly #rate: TokenRate;
  /** The name of the bucket that all workers take from. */
  readonly #name: string;
  /** By what stands for a connection, where each has a bucket of its own. */
  readonly #ofConnections: WeakMap<object, TokenBucket> | undefined;
  #shared: TokenBucket | undefined;

  /** A request that gets no token is counted, and goes on. */
  readonly isShadow: boolean;

  /** `place`: what the limit is for, in the process. With another rate it is another limit. */
  constructor(config: TokenBucketConfig, place: unknown, isPerConnection: boolean, isShadow = false) {
    this.isShadow = isShadow;
    const fillIntervalMs = durationMs(config.fill_interval!);
    const tokensPerFill = config.tokens_per_fill ?? 1;
    this.tokensPerSecond = (1000 * tokensPerFill) / fillIntervalMs;
    this.#rate = new TokenRate({ maxTokens: config.max_tokens ?? 0, tokensPerFill, fillIntervalMs });
    this.#name = JSON.stringify([place, config]);
    this.#ofConnections = isPerConnection ? new WeakMap() : undefined;
  }

  /** The bucket for requests of this connection. */
  bucketFor(connection: object, context: WorkerContext): TokenBucket {
    if (this.#ofConnections === undefined) return (this.#shared ??= context.tokenBucket(this.#name, this.#rate));
    let bucket = this.#ofConnections.get(connection);
    if (bucket === undefined) this.#ofConnections.set(connection, (bucket = new OwnTokenBucket(this.#rate)));
    return bucket;
  }
}
