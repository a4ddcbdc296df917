// A worker's report to the primary: a response had x-envoy-immediate-health-check-fail.

/** Name of the port between the workers and the primary. */
export const FAILED_CHECK_PORT = 'health_checks';

export interface FailedCheckReport {
  /** Name of the cluster. */
  readonly cluster: string;
  /** Index of the host's first shared word. */
  readonly block: number;
}
