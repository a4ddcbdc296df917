// How much of the traffic each priority gets: all of it goes to priority 0 while enough of its hosts are healthy, and
// spills over to the next ones as they fail (Envoy's "priority levels", "degraded endpoints" and "panic threshold").

/** Hosts of one priority by health. */
export interface PriorityHealth {
  readonly total: number;
  readonly healthy: number;
  readonly degraded: number;
  /** Hosts that do not count yet, or no more. */
  readonly excluded: number;
}

export interface PriorityLoads {
  /** Percent for the healthy and for the degraded hosts of each priority; the sum of all is 100. */
  readonly healthy: readonly number[];
  readonly degraded: readonly number[];
  /** Priorities in which too few hosts are healthy to bear the load: theirs goes to all hosts, whatever their health. */
  readonly panic: readonly boolean[];
}

/** `overprovisioning`: 140 means that 72 % of healthy hosts bear all the load. `panicThreshold` in percent; 0: never panic. */
export function priorityLoads(
  priorities: readonly PriorityHealth[],
  overprovisioning: number,
  panicThreshold: number,
): PriorityLoads {
  const healthy = priorities.map((priority) => availability(priority, priority.healthy, overprovisioning));
  const degraded = priorities.map((priority) => availability(priority, priority.degraded, overprovisioning));
  const available = Math.min(100, sum(healthy) + sum(degraded));
  const panic = priorities.map(
    (priority) => available < 100 && panicThreshold > 0 && healthyPercent(priority) < panicThreshold,
  );
  if (panic.length > 0 && panic.every(Boolean)) return { ...byHostCount(priorities), panic };
  if (available === 0) return { ...allToFirst(priorities.length), panic };
  return { ...distribute(healthy, degraded, available), panic };
}

/** Percent of the load that these hosts can bear. */
function availability(priority: PriorityHealth, count: number, overprovisioning: number): number {
  const counted = priority.total - priority.excluded;
  return counted <= 0 ? 0 : Math.min(100, Math.floor((overprovisioning * count) / counted));
}

function healthyPercent(priority: PriorityHealth): number {
  const counted = priority.total - priority.excluded;
  return counted <= 0 ? 0 : (100 * (priority.healthy + priority.degraded)) / counted;
}

/** Healthy hosts of all priorities first, then degraded ones, each as much as it can bear. */
function distribute(healthy: readonly number[], degraded: readonly number[], available: number) {
  let rest = 100;
  const take = (share: number) => {
    const load = Math.min(rest, Math.floor((share * 100) / available));
    rest -= load;
    return load;
  };
  const loads = { healthy: healthy.map(take), degraded: degraded.map(take) };
  // Rounding leaves a few percent: the first that can bear anything bears them.
  const firstHealthy = healthy.findIndex((share) => share > 0);
  if (firstHealthy >= 0) loads.healthy[firstHealthy]! += rest;
  else loads.degraded[degraded.findIndex((share) => share > 0)]! += rest;
  return loads;
}

/** Everything is terrible: each priority by the number of its hosts. */
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
