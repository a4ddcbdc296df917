// Why a host gets fewer requests, or none, as bits. A configuration and discovery set those of EDS.

/** Set bits are reasons; no bit is a healthy host. The order is that in which /clusters lists them. */
export const enum HealthFlag {
  FailedActiveHealthCheck = 1,
  FailedOutlierCheck = 2,
  FailedEdsHealth = 4,
  DegradedActiveHealthCheck = 8,
  DegradedEdsHealth = 16,
  PendingDynamicRemoval = 32,
  PendingActiveHealthCheck = 64,
  ExcludedViaImmediateFail = 128,
  ActiveHealthCheckTimeout = 256,
  EdsStatusDraining = 512,
}

/** What a configuration or a management server says of an endpoint: `health_status`. */
export type EndpointHealth = 'UNKNOWN' | 'HEALTHY' | 'UNHEALTHY' | 'DRAINING' | 'TIMEOUT' | 'DEGRADED';

/** A host with one of these gets requests in panic only. */
export const UNHEALTHY_FLAGS =
  HealthFlag.FailedActiveHealthCheck |
  HealthFlag.FailedOutlierCheck |
  HealthFlag.FailedEdsHealth |
  HealthFlag.EdsStatusDraining;

/** A host that gets one of these was seen to fail: what is connected to it may be bad. */
export const FAILING_FLAGS = HealthFlag.FailedActiveHealthCheck | HealthFlag.FailedOutlierCheck;

/** A host with one of these, and none of the former, gets requests when healthy hosts are too few. */
export const DEGRADED_FLAGS = HealthFlag.DegradedActiveHealthCheck | HealthFlag.DegradedEdsHealth;

/** A host with one of these does not count when the healthy part of a priority is reckoned. */
export const EXCLUDED_FLAGS =
  HealthFlag.PendingActiveHealthCheck | HealthFlag.ExcludedViaImmediateFail | HealthFlag.EdsStatusDraining;

/** Flags of an endpoint with this `health_status`. */
export function endpointHealthFlags(status: EndpointHealth | undefined): number {
  switch (status) {
    case 'UNHEALTHY':
    case 'TIMEOUT':
      return HealthFlag.FailedEdsHealth;
    case 'DRAINING':
      return HealthFlag.EdsStatusDraining;
    case 'DEGRADED':
      return HealthFlag.DegradedEdsHealth;
    default:
      return 0;
  }
}

/** `healthy`, or the names of the flags one after the other: `/failed_active_hc/failed_eds_health`. */
export function healthFlagsText(flags: number): string {
  let text = '';
  for (const [bit, name] of NAMES.entries()) if (flags & (1 << bit)) text += name;
  return text === '' ? 'healthy' : text;
}

const NAMES: readonly string[] = [
  '/failed_active_hc',
  '/failed_outlier_check',
  '/failed_eds_health',
  '/degraded_active_hc',
  '/degraded_eds_health',
  '/pending_dynamic_removal',
  '/pending_active_hc',
  '/excluded_via_immediate_hc_fail',
  '/active_hc_timeout',
  '/eds_status_draining',
];
