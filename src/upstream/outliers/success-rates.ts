// Compares the success rates of hosts.

/** Value of a rate that is unknown because too few hosts have had enough requests. */
export const UNKNOWN = -1;

/** Rates of one interval, in percent. */
export interface ClusterRates {
  readonly average: number;
  /** A host with a lower rate is an outlier. */
  readonly threshold: number;
}

export const NO_RATES: ClusterRates = { average: UNKNOWN, threshold: UNKNOWN };

/**
 * Computes the cluster's rates from the hosts' `rates` in percent, at least one. `factor`: permitted standard deviations below
 * the average.
 */
export function clusterRates(rates: readonly number[], factor: number): ClusterRates {
  const average = rates.reduce((sum, rate) => sum + rate, 0) / rates.length;
  const variance = rates.reduce((sum, rate) => sum + (rate - average) ** 2, 0) / rates.length;
  return { average, threshold: average - factor * Math.sqrt(variance) };
}
