// The kinds of outliers.

/** In the order of envoy.data.cluster.v3.OutlierEjectionType. */
export const enum OutlierKind {
  Consecutive5xx = 0,
  ConsecutiveGatewayFailure = 1,
  SuccessRate = 2,
  ConsecutiveLocalOriginFailure = 3,
  LocalOriginSuccessRate = 4,
  FailurePercentage = 5,
  LocalOriginFailurePercentage = 6,
}

/** Names by kind in runtime keys and fields: `enforcing_<name>`. */
export const OUTLIER_NAMES = [
  'consecutive_5xx',
  'consecutive_gateway_failure',
  'success_rate',
  'consecutive_local_origin_failure',
  'local_origin_success_rate',
  'failure_percentage',
  'failure_percentage_local_origin',
] as const;

/** Names by kind in stats: `ejections_detected_<name>`. */
export const OUTLIER_STATS = [
  'consecutive_5xx',
  'consecutive_gateway_failure',
  'success_rate',
  'consecutive_local_origin_failure',
  'local_origin_success_rate',
  'failure_percentage',
  'local_origin_failure_percentage',
] as const;
