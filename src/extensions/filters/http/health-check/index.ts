// envoy.filters.http.health_check: answers health checks of downstream clients, or passes them to a host.

import type { HealthCheckHealthCheck as HealthCheckConfig } from '../../../../config/generated/api.js';
import {
  byteText,
  compileHeaderRules,
  durationMs,
  type HttpChain,
  type HttpFilterExtension,
  reportMistakes,
} from '../../../sdk.js';
import { CachedAnswer } from './cached-answer.js';
import { HealthCheckFilter, type HealthCheckRules } from './health-check-filter.js';
import { HealthCheckFilterStats } from './stats.js';

const TYPE = 'envoy.extensions.filters.http.health_check.v3.HealthCheck';

export const healthCheck: HttpFilterExtension<HealthCheckConfig> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.health_check',
  typeUrls: [`type.googleapis.com/${TYPE}`],
  implemented: {
    [TYPE]: { pass_through_mode: true, cache_time: true, cluster_min_healthy_percentages: true, headers: true },
  },
  validate(config, report) {
    const { pass_through_mode, cache_time, cluster_min_healthy_percentages, headers } = config as HealthCheckConfig;
    if (pass_through_mode === false && cache_time !== undefined) {
      report('cache_time', 'it applies only with pass_through_mode: otherwise there is no response to cache');
    }
    if (pass_through_mode === true && cluster_min_healthy_percentages !== undefined) {
      report('cluster_min_healthy_percentages', 'it applies only without pass_through_mode: otherwise a host answers');
    }
    reportMistakes(report, '', () => compileHeaderRules(headers, 'headers'));
  },
  scopes: (_config, chain) => [{ prefix: statsPrefix(chain), layout: HealthCheckFilterStats }],
  createOnWorker(config, context, chain) {
    const cacheMs = durationMs(config.cache_time, 0);
    const percentages = Object.entries(config.cluster_min_healthy_percentages ?? {}).sort(([a], [b]) =>
      a < b ? -1 : 1,
    );
    const rules: HealthCheckRules = {
      passesThrough: config.pass_through_mode!,
      headers: compileHeaderRules(config.headers, 'headers') ?? [],
      cache: cacheMs > 0 ? new CachedAnswer(context.clock, cacheMs) : undefined,
      clusters: percentages.map(([name, percent]) => ({
        cluster: context.clusters.reference(name),
        // As in Envoy, fractions of a percent are ignored.
        minPercent: Math.trunc(Number(percent.value ?? 0)),
      })),
      health: context.serverHealth,
      serviceCluster: byteText(context.identity.cluster),
      stats: context.scope(statsPrefix(chain), HealthCheckFilterStats),
    };
    return { create: (stream) => new HealthCheckFilter(stream, rules) };
  },
};

function statsPrefix({ statPrefix }: HttpChain): string {
  return `${statPrefix}health_check.`;
}
