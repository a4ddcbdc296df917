// The options of the routers of one filter chain, from the configuration of the filter.

import type { RetryPolicy } from '../../../../http/routing/retries/retry-policy.js';
import type { RuntimeFraction } from '../../../../runtime/runtime.js';
import type { CallingThread } from '../../../../upstream/calling-thread.js';
import type { RequestFilters } from '../../../../upstream/request-filters.js';

export interface RouterOptions {
  /** Router.dynamic_stats: the cluster counts status codes and response times. */
  readonly hasDynamicStats: boolean;
  /** Router.suppress_grpc_request_failure_code_stats: HTTP statuses of gRPC calls are not counted. */
  readonly suppressesGrpcStatuses: boolean;
  /** Router.suppress_envoy_headers: no x-envoy-* fields are added. */
  readonly suppressEnvoyHeaders: boolean;
  /** Router.respect_expected_rq_timeout. */
  readonly respectsExpectedTimeout: boolean;
  /** Maximum bytes of a request body that are kept for a retry; a route may set less. */
  readonly retryBufferLimit: number;
  /** For copies of requests. */
  readonly calls: CallingThread;
  /** Router.start_child_span: each try of a traced request has a span. */
  readonly startsChildSpan: boolean;
  /** The runtime key upstream.use_retry: the fraction of retries that take place. */
  readonly useRetry: RuntimeFraction;
  /** upstream_http_filters; undefined: none are configured. */
  readonly filters: RequestFilters | undefined;
  /** For requests whose headers ask for retries on a route without retry policy. */
  readonly defaultRetries: RetryPolicy;
}
