// HTTP filters between the router and the connections of a cluster (HttpProtocolOptions.http_filters).

import type { ResponseStream } from '../http/filters/filter.js';
import type { HeaderBlock } from '../http/headers/header-block.js';
import type { RequestPool } from './connections/http-pool.js';

/** A try of a request whose host is chosen. */
export interface FilteredTry {
  readonly stream: ResponseStream;
  readonly headers: HeaderBlock;
  /** The request is its head alone. */
  readonly isHeadOnly: boolean;
}

export interface RequestFilters {
  /**
   * Returns a pool for one try, whose request passes the filters on the way to a connection of `pool`; `pool` itself when no filter
   * handles the request.
   */
  around(pool: RequestPool, current: FilteredTry): RequestPool;
  /** Called when no further try begins. Those that have begun keep their filters. */
  close(): void;
}
