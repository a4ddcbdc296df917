// /clusters as text: one `cluster::…::key::value` a line.

import type { StatsStore } from '../../stats/store.js';
import { healthFlagsText } from '../../upstream/hosts/health-flags.js';
import type { ClusterView } from '../admin-services.js';
import { COUNT_NAMES, type CountedHost, countHosts } from './host-counts.js';

/**
 * With an empty text for each cluster that is undefined, so that a walk over many of them can be broken off. `version` is that
 * of all clusters.
 */
export function* clustersText(
  clusters: Iterable<ClusterView | undefined>,
  version: string,
  store: StatsStore,
): Generator<string, void> {
  yield `version_info::${version}\n`;
  for (const cluster of clusters) {
    if (cluster === undefined) {
      yield '';
      continue;
    }
    yield clusterLines(cluster);
    const prefix = `${cluster.spec.name}::`;
    for (const host of countHosts(cluster.hosts, store)) yield hostLines(`${prefix}${host.host.address}::`, host);
  }
}

function clusterLines({ spec, thresholds, isAddedViaApi, edsServiceName }: ClusterView): string {
  const { name } = spec;
  let text = `${name}::observability_name::${spec.observabilityName}\n`;
  for (const [index, limits] of thresholds.entries()) {
    const prefix = `${name}::${index === 0 ? 'default_priority' : 'high_priority'}::`;
    text +=
      `${prefix}max_connections::${limits.maxConnections}\n` +
      `${prefix}max_pending_requests::${limits.maxPendingRequests}\n` +
      `${prefix}max_requests::${limits.maxRequests}\n` +
      `${prefix}max_retries::${limits.maxRetries}\n`;
  }
  text += `${name}::added_via_api::${isAddedViaApi}\n`;
  return edsServiceName === '' ? text : `${text}${name}::eds_service_name::${edsServiceName}\n`;
}

function hostLines(prefix: string, { host, counts }: CountedHost): string {
  const { hostname, weight, locality, priority, isCanary } = host.endpoint;
  const health = healthFlagsText(host.healthFlags);
  let text = '';
  for (let i = 0; i < counts.length; i++) text += `${prefix}${COUNT_NAMES[i]}::${counts[i]}\n`;
  return (
    `${text}${prefix}hostname::${hostname}\n` +
    `${prefix}healthy::${health}\n` +
    `${prefix}health_flags::${health}\n` +
    `${prefix}weight::${weight}\n` +
    `${prefix}region::${locality.region}\n` +
    `${prefix}zone::${locality.zone}\n` +
    `${prefix}sub_zone::${locality.subZone}\n` +
    `${prefix}canary::${isCanary}\n` +
    `${prefix}priority::${priority}\n` +
    // Nothing that Baton accepts reckons success rates.
    `${prefix}success_rate::-1\n` +
    `${prefix}local_origin_success_rate::-1\n`
  );
}
