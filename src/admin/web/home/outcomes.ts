// How recent requests and connections to hosts ended, from periodically read counters.

export interface Outcome {
  /** Number of requests that succeeded and failed. */
  readonly successes: number;
  readonly errors: number;
  /** Nothing succeeded. */
  readonly isFailing: boolean;
}

/** Counters of a host whose growth is its outcome. */
const COUNTERS = ['rq_success', 'rq_error', 'cx_total', 'cx_connect_fail'] as const;

type Totals = readonly number[];

/** Number of readings that are compared: half a minute, at one reading per three seconds. */
const READINGS = 10;

export class RecentOutcomes {
  #known = new Map<string, Totals[]>();
  #next = new Map<string, Totals[]>();

  /** Begins a reading: hosts missing in the previous one are dropped. */
  begin(): void {
    this.#known = this.#next;
    this.#next = new Map();
  }

  /** Records a host's counters and returns its outcome. Without recent requests or connections it covers the whole time. */
  read(host: string, counts: ReadonlyMap<string, number>): Outcome {
    const totals = COUNTERS.map((name) => counts.get(name) ?? 0);
    let readings = this.#known.get(host) ?? [];
    // The counters were reset: the host was removed and added again.
    if (readings.at(-1)?.some((total, index) => total > totals[index]!)) readings = [];
    readings = [...readings, totals].slice(-READINGS - 1);
    this.#next.set(host, readings);
    const first = readings[0]!;
    const growth = totals.map((total, index) => total - first[index]!);
    const [successes = 0, errors = 0] = growth;
    return { successes, errors, isFailing: isFailing(growth.some((count) => count > 0) ? growth : totals) };
  }
}

function isFailing([successes = 0, errors = 0, connections = 0, failedConnections = 0]: Totals): boolean {
  const cannotConnect = failedConnections > 0 && failedConnections >= connections;
  return successes === 0 && (errors > 0 || cannotConnect);
}
