// envoy.filters.http.grpc_stats: counts gRPC calls and their messages by cluster, and by method if the configuration asks for it.

import type { GrpcStatsFilterConfig } from '../../../../config/generated/api.js';
import { grpcCalls } from '../../../grpc/call-stats.js';
import { type HttpFilterExtension, obeyed } from '../../../sdk.js';
import { GrpcStatsFilter, type GrpcStatsRules } from './grpc-stats-filter.js';

const CONFIG = 'envoy.extensions.filters.http.grpc_stats.v3.FilterConfig';

export const grpcStats: HttpFilterExtension<GrpcStatsFilterConfig> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.grpc_stats',
  typeUrls: [`type.googleapis.com/${CONFIG}`],
  implemented: {
    [CONFIG]: obeyed(
      'emit_filter_state',
      'individual_method_stats_allowlist',
      'stats_for_all_methods',
      'enable_upstream_stats',
      'replace_dots_in_grpc_service_name',
    ),
    'envoy.config.core.v3.GrpcMethodList': obeyed('services'),
    'envoy.config.core.v3.GrpcMethodList.Service': obeyed('name', 'method_names'),
  },
  createOnWorker(config) {
    const rules: GrpcStatsRules = {
      stats: grpcCalls,
      emitsFilterState: config.emit_filter_state ?? false,
      namesAllMethods: config.stats_for_all_methods ?? false,
      // As in Envoy, names of the list keep their dots.
      replacesDots: config.replace_dots_in_grpc_service_name ?? false,
      methods: namedMethods(config),
      recordsTimes: config.enable_upstream_stats ?? false,
    };
    return { create: (stream) => new GrpcStatsFilter(stream, rules) };
  },
};

/** Returns the methods of the list as `service/method`. */
function namedMethods({ individual_method_stats_allowlist: list }: GrpcStatsFilterConfig): ReadonlySet<string> {
  const methods = (list?.services ?? []).flatMap(({ name, method_names = [] }) =>
    method_names.map((method) => `${name}/${method}`),
  );
  return new Set(methods);
}
