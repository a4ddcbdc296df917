// /clusters as text: one `cluster::…::key::value` per line.

import type { StatsStore } from '../../stats/store.js';
import { healthFlagsText } from '../../upstream/hosts/health-flags.js';
import { Origin } from '../../upstream/outliers/outlier-detector.js';
import { UNKNOWN } from '../../upstream/outliers/success-rates.js';
import type { ClusterView, OutlierView } from '../admin-services.js';
import { COUNT_NAMES, type CountedHost, countedHosts } from './host-counts.js';

/**
 * Renders clusters. Yields an empty text for each undefined cluster, so that a walk over many of them can pause. `version`:
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
    for (const host of countedHosts(cluster, store)) {
      yield hostLines(`${prefix}${host.host.address}::`, host, cluster.outliers);
    }
  }
}

function clusterLines({ spec, thresholds, isAddedViaApi, edsServiceName, outliers }: ClusterView): string {
  const { name } = spec;
  let text = `${name}::observability_name::${spec.observabilityName}\n`;
  if (outliers !== undefined) text += outlierLines(`${name}::outlier::`, outliers);
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

function outlierLines(prefix: string, outliers: OutlierView): string {
  const external = outliers.rates(Origin.External);
  const local = outliers.rates(Origin.Local);
  return (
    `${prefix}success_rate_average::${rate(external.average)}\n` +
    `${prefix}success_rate_ejection_threshold::${rate(external.threshold)}\n` +
    `${prefix}local_origin_success_rate_average::${rate(local.average)}\n` +
    `${prefix}local_origin_success_rate_ejection_threshold::${rate(local.threshold)}\n`
  );
}

/** Formats a cluster's rate with six digits. */
function rate(percent: number): string {
  return String(Number(percent.toPrecision(6)));
}

function hostLines(prefix: string, { host, counts }: CountedHost, outliers: OutlierView | undefined): string {
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
    `${prefix}success_rate::${outliers?.successRate(host.block, Origin.External) ?? UNKNOWN}\n` +
    `${prefix}local_origin_success_rate::${outliers?.successRate(host.block, Origin.Local) ?? UNKNOWN}\n`
  );
}
