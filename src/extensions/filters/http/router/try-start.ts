// The preparation of a try whose host is chosen: the pool of its connection, and what of the request's head, its record and its trace
// depends on the host.

import type { ResponseStream } from '../../../../http/filters/filter.js';
import type { Route } from '../../../../http/routing/actions/route.js';
import type { RequestTrace } from '../../../../http/tracing/request-trace.js';
import type { Cluster, ClusterHost, ClusterMeasurements } from '../../../../upstream/cluster.js';
import type { ConnectionTraits } from '../../../../upstream/connections/connect-options.js';
import type { RequestPool } from '../../../../upstream/connections/http-pool.js';
import { TcpTunnel } from '../../../../upstream/connections/tcp-tunnel.js';
import type { RequestFilters } from '../../../../upstream/request-filters.js';
import type { UpstreamThread } from '../../../../upstream/upstream-thread.js';
import type { KeptRequest } from './kept-request.js';
import { connectHeader } from './proxy-header.js';
import { setAttemptCount } from './router-headers.js';
import type { RouterOptions } from './router-options.js';
import type { Tries } from './tries.js';
import { TryMeasurement } from './try-measurement.js';
import { recordHost } from './try-record.js';
import { TrySpan } from './try-span.js';

export class TryStart {
  readonly #stream: ResponseStream;
  readonly #thread: UpstreamThread;
  readonly #options: RouterOptions;
  readonly #request: KeptRequest;
  readonly #tries: Tries;

  constructor(
    stream: ResponseStream,
    thread: UpstreamThread,
    options: RouterOptions,
    request: KeptRequest,
    tries: Tries,
  ) {
    this.#stream = stream;
    this.#thread = thread;
    this.#options = options;
    this.#request = request;
    this.#tries = tries;
  }

  /** Returns the pool of the host; undefined when the circuit breaker of pools is open. `traits`: see Cluster.traitsOf(). */
  poolOf(
    { connect, priority }: Route<unknown>,
    cluster: Cluster,
    host: ClusterHost,
    traits: ConnectionTraits | undefined,
  ): RequestPool | undefined {
    const { info } = this.#stream;
    if (connect?.endsHere(this.#request.headers))
      return new TcpTunnel(cluster, host, priority, traits, connectHeader(connect.proxyVersion, info));
    return cluster.pool(host, priority, info.protocol, traits);
  }

  /** Begins the current try. `named`: the name of the route's cluster for traces; `perTryMs`: its timeout; 0: none. */
  begin(route: Route<unknown>, named: string, cluster: Cluster, host: ClusterHost, perTryMs: number): void {
    const { info, matchesUpstreamScheme, trace } = this.#stream;
    const { headers } = this.#request;
    if (matchesUpstreamScheme) info.scheme = cluster.transportOf(host)?.tls === undefined ? 'http' : 'https';
    this.#tries.current.begin(cluster, host);
    const attempts = ++this.#tries.attempts;
    if (attempts > 1) info.resetTry();
    info.tryStartMs = this.#thread.clock.monotonicMs;
    if (route.autoHostRewrite && host.hostname !== '') {
      const keepsOriginals = !this.#options.suppressEnvoyHeaders;
      route.rewriteToUpstreamHost(headers, host.hostname, keepsOriginals, attempts === 1);
    }
    if (route.includesRequestAttemptCount) setAttemptCount(headers, attempts);
    if (trace !== undefined) this.#propagateTrace(trace, named, host);
    if (cluster.measurements !== undefined) this.#measure(cluster.measurements, perTryMs);
  }

  /** Returns the pool that the try uses: `pool`, or one that passes the request through upstream HTTP filters first. */
  filtered(pool: RequestPool, cluster: Cluster, host: ClusterHost): RequestPool {
    const filters = cluster.filters ?? this.#options.filters;
    return filters === undefined ? pool : this.#around(pool, filters, host);
  }

  /** The filters may report the host. */
  #around(pool: RequestPool, filters: RequestFilters, host: ClusterHost): RequestPool {
    const { headers, isComplete, isHeadOnly } = this.#request;
    recordHost(this.#stream.info, host);
    const isWhole = isComplete && isHeadOnly && !this.#stream.isUpgrade;
    return filters.around(pool, { stream: this.#stream, headers, isHeadOnly: isWhole });
  }

  #measure(stats: ClusterMeasurements, perTryMs: number): void {
    const { scheme } = this.#stream.info;
    const now = this.#thread.clock.monotonicMs;
    this.#tries.current.measure(new TryMeasurement(stats, this.#request.headers, scheme, perTryMs, now));
  }

  /** Begins the span of the try, and writes its context to the request. */
  #propagateTrace(trace: RequestTrace, named: string, host: ClusterHost): void {
    const { attempts, current } = this.#tries;
    if (trace.spawnsTries || this.#options.startsChildSpan)
      current.span = new TrySpan(trace, this.#stream.info, named, attempts);
    trace.inject(this.#request.headers, current.span?.span, host.address);
  }
}
