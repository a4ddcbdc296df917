// envoy.filters.http.router: the last filter of every HTTP filter chain.

import { beforeCodec } from '../../../../config/fields/upstream-filters.js';
import type { Router as RouterConfig } from '../../../../config/generated/api.js';
import type { TerminalFilterFactory } from '../../../../http/filters/filter.js';
import { RetryPolicy } from '../../../../http/routing/retries/retry-policy.js';
import type { TerminalHttpFilterExtension } from '../../../factories.js';
import { Router } from './router.js';
import { createFilterList } from './upstream-filters/filter-list.js';

export const router: TerminalHttpFilterExtension<RouterConfig> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.router',
  typeUrls: ['type.googleapis.com/envoy.extensions.filters.http.router.v3.Router'],
  isTerminal: true,
  createOnWorker(config, thread, chain): TerminalFilterFactory {
    const filters = beforeCodec(config.upstream_http_filters);
    const options = {
      filters: filters && createFilterList(filters, thread, { ...chain, place: `${chain.place} upstream` }),
      hasDynamicStats: config.dynamic_stats ?? true,
      suppressesGrpcStatuses: config.suppress_grpc_request_failure_code_stats ?? false,
      suppressEnvoyHeaders: config.suppress_envoy_headers ?? false,
      respectsExpectedTimeout: config.respect_expected_rq_timeout ?? false,
      startsChildSpan: config.start_child_span ?? false,
      retryBufferLimit: chain.bufferLimit,
      calls: thread.calls,
      useRetry: thread.runtime.fraction('upstream.use_retry', { numerator: 100 }),
      defaultRetries: new RetryPolicy({}, '', thread.runtime),
    };
    return {
      create: (stream) => new Router(stream, thread, options),
      close: () => options.filters?.close(),
    };
  },
};
