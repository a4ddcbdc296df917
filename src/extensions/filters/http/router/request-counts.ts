// Counts a request for its virtual cluster, and for its route's stat_prefix. Created by the first request that has one of them.

import type { StreamInfo } from '../../../../access-log/stream/stream-info.js';
import type { HeaderBlock } from '../../../../http/headers/header-block.js';
import type { Route } from '../../../../http/routing/actions/route.js';
import type { RouteCounts } from '../../../../http/routing/stats/route-counts.js';
import type { CounterSlot } from '../../../../stats/layout.js';

export class RequestCounts {
  #virtualCluster: RouteCounts | undefined;
  #route: RouteCounts | undefined;

  /** Returns whether requests of the route are counted. */
  static isNeeded({ counts, virtualClusters }: Route<unknown>): boolean {
    return counts !== undefined || virtualClusters !== undefined;
  }

  /** Begins a request, whose head is still unchanged by its route. */
  begin(route: Route<unknown>, headers: HeaderBlock, info: StreamInfo): void {
    this.#route = route.counts;
    const virtualCluster = route.virtualClusters?.find(headers);
    this.#virtualCluster = virtualCluster?.counts;
    info.virtualClusterName = virtualCluster?.name ?? '';
  }

  /** Increments a counter of RouteStats. */
  increment(at: CounterSlot): void {
    this.#virtualCluster?.increment(at);
    this.#route?.increment(at);
  }

  countResponse(status: number): void {
    this.#virtualCluster?.countResponse(status);
    this.#route?.countResponse(status);
  }

  /** Records the time from the end of the request to that of the response. */
  recordTime(milliseconds: number): void {
    this.#virtualCluster?.recordTime(milliseconds);
    this.#route?.recordTime(milliseconds);
  }
}
