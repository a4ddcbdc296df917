// envoy.filters.http.fault: delays or aborts requests, to test how clients handle that.

import type { HTTPFault } from '../../../../config/generated/api.js';
import {
  compileHeaderRules,
  type HttpChain,
  type HttpFilterExtension,
  obeyed,
  refused,
  reportMistakes,
  scopePrefix,
} from '../../../sdk.js';
import { type FaultContext, FaultFilter } from './fault-filter.js';
import { FaultRules } from './rules.js';
import { FaultStats } from './stats.js';

const NO_RATE_LIMIT = refused('responses are not slowed down: use delay, which delays requests');

export const fault: HttpFilterExtension<HTTPFault> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.fault',
  typeUrls: ['type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault'],
  takesOwnMessageFromRoutes: true,
  implemented: {
    'envoy.extensions.filters.http.fault.v3.HTTPFault': {
      delay: true,
      abort: true,
      upstream_cluster: true,
      headers: true,
      downstream_nodes: true,
      max_active_faults: true,
      delay_percent_runtime: true,
      abort_percent_runtime: true,
      delay_duration_runtime: true,
      abort_http_status_runtime: true,
      max_active_faults_runtime: true,
      abort_grpc_status_runtime: true,
      disable_downstream_cluster_stats: true,
      response_rate_limit: NO_RATE_LIMIT,
      response_rate_limit_percent_runtime: NO_RATE_LIMIT,
      filter_metadata: refused('faults set no dynamic metadata'),
    },
    'envoy.extensions.filters.http.fault.v3.FaultAbort': obeyed(
      'http_status',
      'grpc_status',
      'header_abort',
      'percentage',
      'response_body',
    ),
    'envoy.extensions.filters.http.fault.v3.FaultAbort.HeaderAbort': {},
    'envoy.extensions.filters.common.fault.v3.FaultDelay': { fixed_delay: true, header_delay: true, percentage: true },
    'envoy.extensions.filters.common.fault.v3.FaultDelay.HeaderDelay': {},
  },
  validate(config, report) {
    reportMistakes(report, '', () => compileHeaderRules((config as HTTPFault).headers, 'headers'));
  },
  scopes: (_config, chain) => [{ prefix: statsPrefix(chain), layout: FaultStats }],
  createOnWorker(config, worker, chain) {
    const own = new FaultRules(config, worker.runtime, '');
    const prefix = statsPrefix(chain);
    const context: FaultContext = {
      worker,
      stats: worker.scope(prefix, FaultStats),
      counterOf: (cluster, name) => worker.stats.dynamicCounter(scopePrefix(prefix), `${scopePrefix(cluster)}.${name}`),
    };
    return {
      create(stream, routeConfig) {
        const rules = (routeConfig as FaultRules | undefined) ?? own;
        return rules.isEmpty ? undefined : new FaultFilter(stream, rules, context);
      },
    };
  },
  /** The most specific configuration applies. */
  compileRouteConfig: (configs, where, runtime) => new FaultRules(configs.at(-1) as HTTPFault, runtime, where),
};

function statsPrefix({ statPrefix }: HttpChain): string {
  return `${statPrefix}fault.`;
}
