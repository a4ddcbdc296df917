// What a worker tells the primary: a response to a request says that its host's health checks fail.

/** Name of the way from the workers to the primary. */
export const FAILED_CHECK_PORT = 'health_checks';

export interface FailedCheckReport {
  /** Name of the cluster. */
  readonly cluster: string;
  /** The host's. */
  readonly block: number;
}
