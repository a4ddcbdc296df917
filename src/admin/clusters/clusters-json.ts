// /clusters as JSON: envoy.admin.v3.Clusters.

import type { StatsStore } from '../../stats/store.js';
import { HealthFlag } from '../../upstream/hosts/health-flags.js';
import type { Thresholds } from '../../upstream/limits.js';
import { Origin } from '../../upstream/outliers/outlier-detector.js';
import { UNKNOWN } from '../../upstream/outliers/success-rates.js';
import type { ClusterView, OutlierView } from '../admin-services.js';
import { addressJson, type Element, type JsonObject, prettyJson, prettyList } from '../json.js';
import { COUNT_NAMES, COUNTERS, type CountedHost, countedHosts, GAUGES } from './host-counts.js';

/** Renders clusters as clustersText() does. */
export function* clustersJson(clusters: Iterable<ClusterView | undefined>, store: StatsStore): Generator<string, void> {
  yield* prettyList({}, 'cluster_statuses', statuses(clusters, store));
  yield '\n';
}

function* statuses(clusters: Iterable<ClusterView | undefined>, store: StatsStore): Generator<Element, void> {
  for (const cluster of clusters) {
    yield cluster &&
      prettyList(
        clusterJson(cluster),
        'host_statuses',
        hostStatuses(countedHosts(cluster, store), cluster.outliers),
        2,
      );
  }
}

function* hostStatuses(hosts: Iterable<CountedHost>, outliers: OutlierView | undefined): Generator<[string], void> {
  for (const host of hosts) yield [prettyJson(hostJson(host, outliers), 4)];
}

function clusterJson({ spec, thresholds, isAddedViaApi, edsServiceName, outliers }: ClusterView): JsonObject {
  return {
    name: spec.name,
    observability_name: spec.observabilityName,
    eds_service_name: edsServiceName || undefined,
    added_via_api: isAddedViaApi || undefined,
    success_rate_ejection_threshold: threshold(outliers, Origin.External),
    local_origin_success_rate_ejection_threshold: threshold(outliers, Origin.Local),
    circuit_breakers: {
      thresholds: [thresholdsJson(thresholds[0]), { priority: 'HIGH', ...thresholdsJson(thresholds[1]) }],
    },
  };
}

function thresholdsJson(limits: Thresholds): JsonObject {
  return {
    max_connections: limits.maxConnections,
    max_pending_requests: limits.maxPendingRequests,
    max_requests: limits.maxRequests,
    max_retries: limits.maxRetries,
  };
}

/** Returns undefined also for a threshold so low that no host can be below it. */
function threshold(outliers: OutlierView | undefined, origin: Origin): JsonObject | undefined {
  const value = outliers?.rates(origin).threshold ?? UNKNOWN;
  return value > 0 ? { value } : undefined;
}

function successRate(outliers: OutlierView | undefined, block: number, origin: Origin): JsonObject | undefined {
  const value = outliers?.successRate(block, origin) ?? UNKNOWN;
  return value >= 0 ? { value } : undefined;
}

function hostJson({ host, counts }: CountedHost, outliers: OutlierView | undefined): JsonObject {
  const { address, hostname, weight, priority, locality } = host.endpoint;
  const metric = (index: number) => ({
    name: COUNT_NAMES[index],
    value: counts[index] === 0 ? undefined : String(counts[index]),
  });
  return {
    address: addressJson(address),
    stats: [...COUNTERS.map(metric), ...GAUGES.map((index) => ({ type: 'GAUGE', ...metric(index) }))],
    health_status: healthJson(host.healthFlags),
    success_rate: successRate(outliers, host.block, Origin.External),
    local_origin_success_rate: successRate(outliers, host.block, Origin.Local),
    weight,
    hostname: hostname || undefined,
    priority: priority || undefined,
    locality: {
      region: locality.region || undefined,
      zone: locality.zone || undefined,
      sub_zone: locality.subZone || undefined,
    },
  };
}

/** envoy.admin.v3.HostHealthStatus with only the flags that are set. */
function healthJson(flags: number): JsonObject {
  const isSet = (flag: HealthFlag) => (flags & flag) !== 0 || undefined;
  return {
    failed_active_health_check: isSet(HealthFlag.FailedActiveHealthCheck),
    failed_outlier_check: isSet(HealthFlag.FailedOutlierCheck),
    failed_active_degraded_check: isSet(HealthFlag.DegradedActiveHealthCheck),
    pending_dynamic_removal: isSet(HealthFlag.PendingDynamicRemoval),
    pending_active_hc: isSet(HealthFlag.PendingActiveHealthCheck),
    excluded_via_immediate_hc_fail: isSet(HealthFlag.ExcludedViaImmediateFail),
    active_hc_timeout: isSet(HealthFlag.ActiveHealthCheckTimeout),
    eds_health_status: edsHealth(flags),
  };
}

function edsHealth(flags: number): string {
  if (flags & HealthFlag.FailedEdsHealth) return 'UNHEALTHY';
  if (flags & HealthFlag.EdsStatusDraining) return 'DRAINING';
  return flags & HealthFlag.DegradedEdsHealth ? 'DEGRADED' : 'HEALTHY';
}
