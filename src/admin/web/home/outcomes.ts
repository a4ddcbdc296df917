// How the last requests and connections to hosts ended, by counters that are read again and again.

export interface Outcome {
  /** Requests that were answered, and those that failed. */
  readonly successes: number;
  readonly errors: number;
  /** Nothing that was tried has worked. */
  readonly isFailing: boolean;
}

/** Counters of a host whose growth is an outcome. */
const COUNTERS = ['rq_success', 'rq_error', 'cx_total', 'cx_connect_fail'] as const;

type Totals = readonly number[];

/** So many readings back it looks: half a minute, at one in three seconds. */
const READINGS = 10;

export class RecentOutcomes {
  #known = new Map<string, Totals[]>();
  #next = new Map<string, Totals[]>();

  /** Begins a reading: hosts that the one before has not named are forgotten. */
  begin(): void {
    this.#known = this.#next;
    this.#next = new Map();
  }

  /** Notes a host's counters. Where nothing has happened of late, its outcome is that of all the time. */
  read(host: string, counts: ReadonlyMap<string, number>): Outcome {
    const totals = COUNTERS.map((name) => counts.get(name) ?? 0);
    let readings = this.#known.get(host) ?? [];
    // They have been reset: the host has gone and come back.
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
