// Bits for the reasons why a host gets fewer requests or none. Those for EDS are also set for endpoints in the configuration.

/** Each bit is a reason; a host without bits is healthy. /clusters lists them in this order. */
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

/** `health_status` of an endpoint in a configuration or an EDS response. */
export type EndpointHealth = 'UNKNOWN' | 'HEALTHY' | 'UNHEALTHY' | 'DRAINING' | 'TIMEOUT' | 'DEGRADED';

/** A host with one of these gets requests only in panic. */
export const UNHEALTHY_FLAGS =
  HealthFlag.FailedActiveHealthCheck |
  HealthFlag.FailedOutlierCheck |
  HealthFlag.FailedEdsHealth |
  HealthFlag.EdsStatusDraining;

/** A host that gets one of these was observed failing: existing connections to it may be broken. */
export const FAILING_FLAGS = HealthFlag.FailedActiveHealthCheck | HealthFlag.FailedOutlierCheck;

/** A host with one of these, and none of UNHEALTHY_FLAGS, gets requests when there are too few healthy hosts. */
export const DEGRADED_FLAGS = HealthFlag.DegradedActiveHealthCheck | HealthFlag.DegradedEdsHealth;

/** A host with one of these is not counted in the health of its priority. */
export const EXCLUDED_FLAGS =
  HealthFlag.PendingActiveHealthCheck | HealthFlag.ExcludedViaImmediateFail | HealthFlag.EdsStatusDraining;

/** Returns the flags of an endpoint with this `health_status`. */
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

/** Returns `healthy`, or the concatenated names of the flags: `/failed_active_hc/failed_eds_health`. */
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
