// A compiled BandwidthLimit: the directions that it limits, the rate, and the trailers that report delays.

import type { BandwidthLimit } from '../../../../config/generated/api.js';
import {
  durationMs,
  type HeaderKey,
  headerKey,
  type Runtime,
  type RuntimeFlag,
  type TokenBucket,
  TokenRate,
  type WorkerContext,
} from '../../../sdk.js';
import { type DirectionStats, directionStats } from './stats.js';

const DEFAULT_FILL_MS = 50;
/** Limits above this, over 8 TB/s, are the same. */
const MAX_KBPS = 2 ** 33;

/** The rate of a bucket from which the first user of a limit takes a token. Those of limits that are no longer used become free again. */
const ONCE = new TokenRate({ maxTokens: 1, tokensPerFill: 1, fillIntervalMs: 3_600_000 });

/** The names of the trailers. */
export interface DelayTrailers {
  readonly requestDelay: HeaderKey;
  readonly requestFilterDelay: HeaderKey;
  readonly responseDelay: HeaderKey;
  readonly responseFilterDelay: HeaderKey;
}

export class BandwidthRules {
  readonly limitsRequests: boolean;
  readonly limitsResponses: boolean;
  readonly fillMs: number;
  /** Undefined: no trailers are added. */
  readonly trailers: DelayTrailers | undefined;
  readonly #enabled: RuntimeFlag;
  readonly #statPrefix: string;
  readonly #rate: TokenRate;
  readonly #bucketName: string;
  #bucket: TokenBucket | undefined;
  #request: DirectionStats | undefined;
  #response: DirectionStats | undefined;

  /** `place` identifies the limit in the process, together with the rate. */
  constructor(config: BandwidthLimit, runtime: Runtime, place: string) {
    const mode = config.enable_mode ?? 'DISABLED';
    const kbps = Math.min(Number(config.limit_kbps ?? 1), MAX_KBPS);
    const maxTokens = kbps * 1024;
    this.limitsRequests = mode === 'REQUEST' || mode === 'REQUEST_AND_RESPONSE';
    this.limitsResponses = mode === 'RESPONSE' || mode === 'REQUEST_AND_RESPONSE';
    this.fillMs = config.fill_interval === undefined ? DEFAULT_FILL_MS : durationMs(config.fill_interval);
    this.trailers = config.enable_response_trailers ? trailersOf(config.response_trailer_prefix ?? '') : undefined;
    this.#enabled = runtime.flag(config.runtime_enabled, true);
    this.#statPrefix = config.stat_prefix!;
    this.#rate = new TokenRate({ maxTokens, tokensPerFill: maxTokens, fillIntervalMs: 1000 });
    this.#bucketName = JSON.stringify(['bandwidth_limit', place, config]);
  }

  get isEnabled(): boolean {
    return (this.limitsRequests || this.limitsResponses) && this.#enabled.value;
  }

  /** Returns the bucket of both directions, which all workers share. */
  bucketFor(context: WorkerContext): TokenBucket {
    return (this.#bucket ??= this.#open(context));
  }

  /** As in Envoy, the bucket holds the tokens of one interval at first. */
  #open(context: WorkerContext): TokenBucket {
    const { monotonicMs } = context.clock;
    const bucket = context.tokenBucket(this.#bucketName, this.#rate);
    if (!context.tokenBucket(`${this.#bucketName} is used`, ONCE).take(monotonicMs)) return bucket;
    bucket.take(monotonicMs, Math.ceil(this.#rate.maxTokens * (1 - this.fillMs / 1000)));
    return bucket;
  }

  requestStats(context: WorkerContext): DirectionStats {
    return (this.#request ??= directionStats(context, this.#statPrefix, 'request'));
  }

  responseStats(context: WorkerContext): DirectionStats {
    return (this.#response ??= directionStats(context, this.#statPrefix, 'response'));
  }
}

function trailersOf(configured: string): DelayTrailers {
  const prefix = configured === '' ? 'bandwidth' : `${configured}-bandwidth`;
  return {
    requestDelay: headerKey(`${prefix}-request-delay-ms`),
    requestFilterDelay: headerKey(`${prefix}-request-filter-delay-ms`),
    responseDelay: headerKey(`${prefix}-response-delay-ms`),
    responseFilterDelay: headerKey(`${prefix}-response-filter-delay-ms`),
  };
}
