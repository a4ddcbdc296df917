// A thread's report to the primary: events after which a Redis cluster may have other shards.

import type { Timers } from '../io/time/timing-wheel.js';
import { Timer } from '../io/time/timing-wheel.js';
import type { ClusterSpec } from './cluster-config.js';

/** Name of the port between the workers and the primary. */
export const EVENT_PORT = 'baton.cluster_events';

export interface EventReport {
  readonly cluster: string;
  readonly specVersion: number;
  /** Redirections that were followed, and commands that failed, since the last report. */
  readonly redirections: number;
  readonly failures: number;
}

/** A thread reports the events of this time together. */
const REPORT_MS = 20;

/** The events of one cluster on one thread. */
export class ClusterEvents {
  readonly #reported: NonNullable<ClusterSpec['reportedEvents']>;
  readonly #wheel: Timers;
  readonly #report: (counts: Pick<EventReport, 'failures' | 'redirections'>) => void;
  readonly #timer = new Timer<ClusterEvents>(this, due);
  #redirections = 0;
  #failures = 0;

  constructor(
    reported: NonNullable<ClusterSpec['reportedEvents']>,
    wheel: Timers,
    report: (counts: Pick<EventReport, 'failures' | 'redirections'>) => void,
  ) {
    this.#reported = reported;
    this.#wheel = wheel;
    this.#report = report;
  }

  redirected(): void {
    if (!this.#reported.redirections) return;
    this.#redirections++;
    this.#schedule();
  }

  failed(): void {
    if (!this.#reported.failures) return;
    this.#failures++;
    this.#schedule();
  }

  report(): void {
    const counts = { redirections: this.#redirections, failures: this.#failures };
    this.#redirections = this.#failures = 0;
    this.#report(counts);
  }

  close(): void {
    this.#wheel.cancel(this.#timer);
  }

  #schedule(): void {
    if (!this.#timer.isScheduled) this.#wheel.reschedule(this.#timer, REPORT_MS);
  }
}

function due(events: ClusterEvents): void {
  events.report();
}
