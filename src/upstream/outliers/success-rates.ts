// How a host's share of successes compares with the other hosts' shares.

/** -1: too few hosts have had enough requests to tell. */
export const UNKNOWN = -1;

/** Of one interval, in percent. */
export interface ClusterRates {
  readonly average: number;
  /** A host with a lower rate is an outlier. */
  readonly threshold: number;
}

export const NO_RATES: ClusterRates = { average: UNKNOWN, threshold: UNKNOWN };

/** `rates` of hosts in percent, of which there is one at least; `factor`: how many standard deviations a host may be below their average. */
export function clusterRates(rates: readonly number[], factor: number): ClusterRates {
  const average = rates.reduce((sum, rate) => sum + rate, 0) / rates.length;
  const variance = rates.reduce((sum, rate) => sum + (rate - average) ** 2, 0) / rates.length;
  return { average, threshold: average - factor * Math.sqrt(variance) };
}
