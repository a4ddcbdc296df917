// Divides the traffic among priorities: all of it goes to priority 0 while enough of its hosts are healthy, and spills over to
// the next ones as they fail (Envoy's "priority levels", "degraded endpoints" and "panic threshold").

/** Host counts of one priority by health. */
export interface PriorityHealth {
  readonly total: number;
  readonly healthy: number;
  readonly degraded: number;
  /** Hosts that are not counted. */
  readonly excluded: number;
  /** Weights that measure its health instead of these numbers; they do not decide about panic. */
  readonly weights?: MeasuredHealth | undefined;
}

/** The sums of the weights of hosts. */
export interface MeasuredHealth {
  readonly counted: number;
  readonly healthy: number;
  readonly degraded: number;
}

export interface PriorityLoads {
  /** Percents for the healthy and the degraded hosts of each priority; they sum to 100. */
  readonly healthy: readonly number[];
  readonly degraded: readonly number[];
  /** Priorities with too few healthy hosts for the load: theirs goes to all hosts, whatever their health. */
  readonly panic: readonly boolean[];
}

/**
 * Returns the loads. `overprovisioning`: with 140, 72 % of healthy hosts carry all the load. `panicThreshold` in percent; 0:
 * never panic.
 */
export function priorityLoads(
  priorities: readonly PriorityHealth[],
  overprovisioning: number,
  panicThreshold: number,
): PriorityLoads {
  const healthy = priorities.map((priority) => availability(priority, 'healthy', overprovisioning));
  const degraded = priorities.map((priority) => availability(priority, 'degraded', overprovisioning));
  const available = Math.min(100, sum(healthy) + sum(degraded));
  const panic = priorities.map(
    (priority) => available < 100 && panicThreshold > 0 && healthyPercent(priority) < panicThreshold,
  );
  if (panic.length > 0 && panic.every(Boolean)) return { ...byHostCount(priorities), panic };
  if (available === 0) return { ...allToFirst(priorities.length), panic };
  return { ...distribute(healthy, degraded, available), panic };
}

/** Returns the percent of the load that these hosts can carry. */
function availability(priority: PriorityHealth, of: 'healthy' | 'degraded', overprovisioning: number): number {
  const counted = priority.weights?.counted ?? priority.total - priority.excluded;
  const usable = priority.weights?.[of] ?? priority[of];
  return counted <= 0 ? 0 : Math.min(100, Math.floor((overprovisioning * usable) / counted));
}

/** Returns the percentage of the counted hosts that is healthy or degraded. */
export function healthyPercent(priority: PriorityHealth): number {
  const counted = priority.total - priority.excluded;
  return counted <= 0 ? 0 : (100 * (priority.healthy + priority.degraded)) / counted;
}

/** Loads the healthy hosts of all priorities first, then the degraded ones, each up to its capacity. */
function distribute(healthy: readonly number[], degraded: readonly number[], available: number) {
  let rest = 100;
  const take = (share: number) => {
    const load = Math.min(rest, Math.floor((share * 100) / available));
    rest -= load;
    return load;
  };
  const loads = { healthy: healthy.map(take), degraded: degraded.map(take) };
  // Rounding leaves a few percent, which the first priority with capacity gets.
  const firstHealthy = healthy.findIndex((share) => share > 0);
  if (firstHealthy >= 0) loads.healthy[firstHealthy]! += rest;
  else loads.degraded[degraded.findIndex((share) => share > 0)]! += rest;
  return loads;
}

/** Total panic: loads each priority by the number of its hosts. */
function byHostCount(priorities: readonly PriorityHealth[]) {
  const hosts = sum(priorities.map((priority) => priority.total));
  if (hosts === 0) return allToFirst(priorities.length);
  const healthy = priorities.map((priority) => Math.floor((100 * priority.total) / hosts));
  healthy[priorities.findIndex((priority) => priority.total > 0)]! += 100 - sum(healthy);
  return { healthy, degraded: priorities.map(() => 0) };
}

function allToFirst(count: number) {
  return {
    healthy: Array.from({ length: count }, (_, priority) => (priority === 0 ? 100 : 0)),
    degraded: Array.from({ length: count }, () => 0),
  };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
