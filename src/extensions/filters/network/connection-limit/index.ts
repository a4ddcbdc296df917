// envoy.filters.network.connection_limit: closes new connections, at once or after a delay, while its chain has as many as allowed.

import type { ConnectionLimit } from '../../../../config/generated/api.js';
import {
  defineLayout,
  durationMs,
  FilterClose,
  type FilteredClient,
  FilterStatus,
  MAX_TIMER_MS,
  type NetworkFilter,
  type NetworkFilterExtension,
  obeyed,
  type RuntimeFlag,
  type Scope,
  type SharedConnectionCount,
} from '../../../sdk.js';

const MESSAGE = 'envoy.extensions.filters.network.connection_limit.v3.ConnectionLimit';
const MAX_CONNECTIONS = 2 ** 31 - 1;

const Stats = defineLayout({ active_connections: 'gauge', limited_connections: 'counter' });

export const connectionLimit: NetworkFilterExtension<ConnectionLimit> = {
  category: 'envoy.filters.network',
  name: 'envoy.filters.network.connection_limit',
  typeUrls: [`type.googleapis.com/${MESSAGE}`],
  countsConnections: true,
  implemented: { [MESSAGE]: obeyed('stat_prefix', 'max_connections', 'delay', 'runtime_enabled') },
  scopes: (config) => [{ prefix: prefixOf(config), layout: Stats }],
  createOnWorker(config, chain, context) {
    const limit: Limit = {
      count: chain.nextCount(),
      maxConnections: Math.min(Number(config.max_connections ?? 0), MAX_CONNECTIONS),
      delayMs: Math.min(MAX_TIMER_MS, durationMs(config.delay, 0)),
      enabled: context.runtime.flag(config.runtime_enabled, true),
      stats: context.scope(prefixOf(config), Stats),
    };
    return { create: (client) => new ConnectionLimitFilter(client, limit) };
  },
};

function prefixOf(config: ConnectionLimit): string {
  return `connection_limit.${config.stat_prefix}.`;
}

interface Limit {
  /** The connections of the chain on all workers. */
  readonly count: SharedConnectionCount;
  readonly maxConnections: number;
  /** Delay before a connection beyond the limit is closed. */
  readonly delayMs: number;
  readonly enabled: RuntimeFlag;
  readonly stats: Scope;
}

class ConnectionLimitFilter implements NetworkFilter {
  readonly #client: FilteredClient;
  readonly #limit: Limit;
  /** It is in the gauge; `#isCounted`: also in the count. */
  #isActive = false;
  #isCounted = false;

  constructor(client: FilteredClient, limit: Limit) {
    this.#client = client;
    this.#limit = limit;
  }

  onNewConnection(): FilterStatus {
    const { count, delayMs, enabled, maxConnections, stats } = this.#limit;
    if (!enabled.value) return FilterStatus.Continue;
    this.#isActive = true;
    stats.increment(Stats.at.active_connections);
    this.#isCounted = count.tryAcquire(maxConnections);
    if (this.#isCounted) return FilterStatus.Continue;
    stats.increment(Stats.at.limited_connections);
    this.#client.close(FilterClose.NoFlush, '', delayMs);
    return FilterStatus.Stop;
  }

  onData(): FilterStatus {
    return FilterStatus.Continue;
  }

  onDestroy(): void {
    if (this.#isCounted) this.#limit.count.release();
    if (this.#isActive) this.#limit.stats.decrement(Stats.at.active_connections);
  }
}
