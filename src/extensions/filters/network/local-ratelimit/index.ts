// envoy.filters.network.local_ratelimit: closes new connections for which its token bucket, which all workers share, has no token.

import type { NetworkLocalRatelimitLocalRateLimit } from '../../../../config/generated/api.js';
import {
  defineLayout,
  durationMs,
  FilterClose,
  type FilteredClient,
  FilterStatus,
  type NetworkFilter,
  type NetworkFilterExtension,
  obeyed,
  ResponseFlag,
  TokenRate,
} from '../../../sdk.js';

const MESSAGE = 'envoy.extensions.filters.network.local_ratelimit.v3.LocalRateLimit';
const MIN_FILL_INTERVAL_MS = 50;

const Stats = defineLayout({ rate_limited: 'counter' });

export const networkLocalRateLimit: NetworkFilterExtension<NetworkLocalRatelimitLocalRateLimit> = {
  category: 'envoy.filters.network',
  name: 'envoy.filters.network.local_ratelimit',
  typeUrls: [`type.googleapis.com/${MESSAGE}`],
  implemented: {
    [MESSAGE]: obeyed('stat_prefix', 'token_bucket', 'runtime_enabled', 'share_key'),
    'envoy.type.v3.TokenBucket': obeyed('max_tokens', 'tokens_per_fill', 'fill_interval'),
  },
  validate({ token_bucket: bucket }, report) {
    if (bucket?.fill_interval === undefined || durationMs(bucket.fill_interval) >= MIN_FILL_INTERVAL_MS) return;
    report('token_bucket.fill_interval', `it must be at least ${MIN_FILL_INTERVAL_MS} ms`);
  },
  scopes: (config) => [{ prefix: prefixOf(config), layout: Stats }],
  createOnWorker(config, chain, context) {
    const {
      fill_interval: interval,
      max_tokens: maxTokens = 0,
      tokens_per_fill: tokensPerFill = 1,
    } = config.token_bucket!;
    // Filters with one share_key use one bucket; without a key each chain has its own.
    const place = config.share_key
      ? ['share_key', config.share_key]
      : ['network', chain.name, chain.chain, config.stat_prefix];
    const bucket = context.tokenBucket(
      JSON.stringify([place, config.token_bucket]),
      new TokenRate({ maxTokens, tokensPerFill, fillIntervalMs: durationMs(interval!) }),
    );
    const enabled = context.runtime.flag(config.runtime_enabled, true);
    const stats = context.scope(prefixOf(config), Stats);
    const isAllowed = () => {
      if (!enabled.value || bucket.take(context.clock.monotonicMs)) return true;
      stats.increment(Stats.at.rate_limited);
      return false;
    };
    return { create: (client) => new LimitFilter(client, isAllowed) };
  },
};

function prefixOf(config: NetworkLocalRatelimitLocalRateLimit): string {
  return `local_rate_limit.${config.stat_prefix}.`;
}

class LimitFilter implements NetworkFilter {
  readonly #client: FilteredClient;
  readonly #isAllowed: () => boolean;

  constructor(client: FilteredClient, isAllowed: () => boolean) {
    this.#client = client;
    this.#isAllowed = isAllowed;
  }

  onNewConnection(): FilterStatus {
    if (this.#isAllowed()) return FilterStatus.Continue;
    this.#client.addResponseFlag(ResponseFlag.UpstreamRetryLimitExceeded);
    this.#client.close(FilterClose.NoFlush, '');
    return FilterStatus.Stop;
  }

  onData(): FilterStatus {
    return FilterStatus.Continue;
  }
}
