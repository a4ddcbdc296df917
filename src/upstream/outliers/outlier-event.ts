// Events of ejections and returns: envoy.data.cluster.v3.OutlierDetectionEvent, without its time and its host.

import type { OutlierDetectionEvent, OutlierEjectionType } from '../../config/generated/api.js';
import { Origin, type OutlierHost } from './outlier-detector.js';
import { OutlierKind } from './outlier-kind.js';
import type { ClusterRates } from './success-rates.js';

/** By kind. */
const TYPES: readonly OutlierEjectionType[] = [
  'CONSECUTIVE_5XX',
  'CONSECUTIVE_GATEWAY_FAILURE',
  'SUCCESS_RATE',
  'CONSECUTIVE_LOCAL_ORIGIN_FAILURE',
  'SUCCESS_RATE_LOCAL_ORIGIN',
  'FAILURE_PERCENTAGE',
  'FAILURE_PERCENTAGE_LOCAL_ORIGIN',
];

/**
 * Returns the event of an ejection. `rates` are the cluster's by Origin; `isEnforced`: the host is ejected, and not only
 * detected.
 */
export function ejectionEvent(
  host: OutlierHost,
  kind: OutlierKind,
  isEnforced: boolean,
  rates: (origin: Origin) => ClusterRates,
  nowMs: number,
): OutlierDetectionEvent {
  return {
    type: TYPES[kind],
    ...sinceLastAction(host, nowMs),
    action: 'EJECT',
    num_ejections: host.ejections,
    enforced: isEnforced,
    ...reason(host, kind, rates),
  };
}

export function returnEvent(host: OutlierHost, nowMs: number): OutlierDetectionEvent {
  return { ...sinceLastAction(host, nowMs), action: 'UNEJECT' };
}

function sinceLastAction({ changedMs }: OutlierHost, nowMs: number): OutlierDetectionEvent {
  return changedMs === undefined ? {} : { secs_since_last_action: String(Math.floor((nowMs - changedMs) / 1000)) };
}

/** Rates are rounded down to whole percents. */
function reason(host: OutlierHost, kind: OutlierKind, rates: (origin: Origin) => ClusterRates): OutlierDetectionEvent {
  switch (kind) {
    case OutlierKind.SuccessRate:
      return successRateReason(host, Origin.External, rates);
    case OutlierKind.LocalOriginSuccessRate:
      return successRateReason(host, Origin.Local, rates);
    case OutlierKind.FailurePercentage:
      return { eject_failure_percentage_event: { host_success_rate: rateOf(host, Origin.External) } };
    case OutlierKind.LocalOriginFailurePercentage:
      return { eject_failure_percentage_event: { host_success_rate: rateOf(host, Origin.Local) } };
    default:
      return { eject_consecutive_event: {} };
  }
}

function successRateReason(
  host: OutlierHost,
  origin: Origin,
  rates: (origin: Origin) => ClusterRates,
): OutlierDetectionEvent {
  const { average, threshold } = rates(origin);
  return {
    eject_success_rate_event: {
      host_success_rate: rateOf(host, origin),
      cluster_average_success_rate: Math.floor(average),
      cluster_success_rate_ejection_threshold: Math.floor(threshold),
    },
  };
}

function rateOf({ volumes }: OutlierHost, origin: Origin): number {
  return Math.floor(volumes[origin].rate);
}
