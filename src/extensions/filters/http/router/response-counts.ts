// What the responses of one request count: for their host, their cluster, and the request's virtual cluster and route. One object for
// each router.

import { headerKey } from '../../../../common/text/header-names.js';
import type { ResponseStream } from '../../../../http/filters/filter.js';
import { callStatus } from '../../../../http/headers/grpc-outcome.js';
import { isGrpcRequest } from '../../../../http/headers/grpc-reply.js';
import type { HeaderBlock } from '../../../../http/headers/header-block.js';
import type { Route } from '../../../../http/routing/actions/route.js';
import { ClusterStats } from '../../../../stats/layouts/cluster.js';
import { HttpStats } from '../../../../stats/layouts/http.js';
import { RouteStats } from '../../../../stats/layouts/route.js';
import type { Cluster, ClusterHost } from '../../../../upstream/cluster.js';
import { countHostCall, countHostCallHead, countHostResponse } from '../../../../upstream/connections/host-outcomes.js';
import { isCanaryResponse } from '../../../../upstream/response-stats.js';
import { RequestCounts } from './request-counts.js';
import type { RouterOptions } from './router-options.js';

const CONTENT_TYPE = headerKey('content-type');

export class ResponseCounts {
  /** The counts of the virtual cluster and the route; undefined: the request has neither. */
  ofRoute: RequestCounts | undefined;
  readonly #stream: ResponseStream;
  readonly #options: RouterOptions;
  /** Created by the first request with a virtual cluster or a stat_prefix. */
  #requestCounts: RequestCounts | undefined;
  /** The host gets a gRPC call: filters may have made it from another request, or the reverse. */
  #isGrpc = false;
  /** The accepted response is from a canary host. */
  #isCanary = false;
  /** The end of the gRPC response shows whether the call succeeded. */
  #awaitsCallStatus = false;

  constructor(stream: ResponseStream, options: RouterOptions) {
    this.#stream = stream;
    this.#options = options;
  }

  /** Begins a request, whose head is still unchanged by its route. */
  begin(route: Route<unknown>, headers: HeaderBlock): void {
    this.#isGrpc = headers.mayHave(CONTENT_TYPE.id) && isGrpcRequest(headers);
    this.#awaitsCallStatus = false;
    this.ofRoute = undefined;
    if (!RequestCounts.isNeeded(route)) return;
    this.ofRoute = this.#requestCounts ??= new RequestCounts();
    this.ofRoute.begin(route, headers, this.#stream.info);
  }

  /** The cluster counts statuses and times of this request. */
  get #isCounted(): boolean {
    return this.#options.hasDynamicStats && !this.#stream.info.isHealthCheck;
  }

  /** Called when a try has a connection. */
  tryBegan(): void {
    this.ofRoute?.increment(RouteStats.at.upstream_rq_total);
  }

  /** Called for a 1xx response. */
  informed(cluster: Cluster, host: ClusterHost, headers: HeaderBlock): void {
    this.answered(cluster, headers.status, host, isCanaryResponse(headers, host));
  }

  /** Called for the head of the response that is accepted. */
  responded(cluster: Cluster, host: ClusterHost, headers: HeaderBlock, endStream: boolean): void {
    if (this.#isGrpc) this.#awaitsCallStatus = countHostCallHead(host, headers, endStream);
    else countHostResponse(host, headers);
    this.#isCanary = isCanaryResponse(headers, host);
    this.answered(cluster, headers.status, host, this.#isCanary);
  }

  /** Called for a response, or a local reply in its place; `host`: undefined if there was none. */
  answered(cluster: Cluster, status: number, host: ClusterHost | undefined, isCanary = host?.isCanary ?? false): void {
    if (!this.#isCounted) return;
    const isWithoutStatus = this.#options.suppressesGrpcStatuses && this.#isGrpc;
    cluster.responses.countResponse(status, this.#stream.isInternal, host, isCanary, isWithoutStatus);
    this.ofRoute?.countResponse(status);
  }

  /** Called at the end of the response; `trailers`: undefined if there are none, and a gRPC call has no status. */
  ended(host: ClusterHost, trailers?: HeaderBlock): void {
    if (!this.#awaitsCallStatus) return;
    this.#awaitsCallStatus = false;
    countHostCall(host, trailers === undefined ? 0 : callStatus(trailers));
  }

  /** Called when a response that has begun is cut off. As in Envoy, only gRPC calls count this. */
  cutOff(host: ClusterHost): void {
    if (!this.#awaitsCallStatus) return;
    this.ended(host);
    this.#stream.httpStats.increment(HttpStats.at.rq_reset_after_downstream_response_started);
  }

  /** Records the time from the end of the request to that of the response. */
  recordTime(cluster: Cluster, host: ClusterHost, milliseconds: number): void {
    if (!this.#isCounted) return;
    cluster.responses.recordTime(milliseconds, this.#stream.isInternal, host, this.#isCanary);
    this.ofRoute?.recordTime(milliseconds);
  }

  /** Called when the timeout of the request ends a try. */
  timedOut(cluster: Cluster): void {
    cluster.stats.increment(ClusterStats.at.upstream_rq_timeout);
    this.ofRoute?.increment(RouteStats.at.upstream_rq_timeout);
  }
}
