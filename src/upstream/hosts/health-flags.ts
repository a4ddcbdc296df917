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
  /** The statuses HEALTHY and TIMEOUT of discovery, which differ from UNKNOWN and UNHEALTHY for override_host_status only. */
  EdsStatusHealthy = 1024,
  EdsStatusTimeout = 2048,
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
    case 'HEALTHY':
      return HealthFlag.EdsStatusHealthy;
    case 'UNHEALTHY':
      return HealthFlag.FailedEdsHealth;
    case 'TIMEOUT':
      return HealthFlag.FailedEdsHealth | HealthFlag.EdsStatusTimeout;
    case 'DRAINING':
      return HealthFlag.EdsStatusDraining;
    case 'DEGRADED':
      return HealthFlag.DegradedEdsHealth;
    default:
      return 0;
  }
}

/** The numbers of EndpointHealth in the API. */
const enum Status {
  Unknown = 0,
  Healthy = 1,
  Unhealthy = 2,
  Draining = 3,
  Timeout = 4,
  Degraded = 5,
}

const STATUSES: { readonly [status in EndpointHealth]: Status } = {
  UNKNOWN: Status.Unknown,
  HEALTHY: Status.Healthy,
  UNHEALTHY: Status.Unhealthy,
  DRAINING: Status.Draining,
  TIMEOUT: Status.Timeout,
  DEGRADED: Status.Degraded,
};

/** Returns a bit for each status. */
export function statusBits(statuses: readonly EndpointHealth[]): number {
  return statuses.reduce((bits, status) => bits | (1 << STATUSES[status]), 0);
}

/** Returns the status of a host, as observed or else from discovery: its number in the API. */
export function healthStatus(flags: number): number {
  if (flags & FAILING_FLAGS) return Status.Unhealthy;
  if (flags & HealthFlag.EdsStatusDraining) return Status.Draining;
  if (flags & HealthFlag.EdsStatusTimeout) return Status.Timeout;
  if (flags & HealthFlag.FailedEdsHealth) return Status.Unhealthy;
  if (flags & DEGRADED_FLAGS) return Status.Degraded;
  return flags & HealthFlag.EdsStatusHealthy ? Status.Healthy : Status.Unknown;
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
