// Virtual hosts for which requests on the workers wait, until it is known whether they exist, or until their source has been
// silent for too long.

import { shownName } from '../../../common/text/shown.js';
import { PatientTimeout } from '../../../common/time/patient-timeout.js';
import { getLogger } from '../../../log/logger.js';
import { AwaitedHostStats } from '../../../stats/layouts/xds.js';
import type { Scope } from '../../../stats/thread-stats.js';

/** Limit for hosts requested at the same time, since clients choose the names. A further one replaces the oldest. */
const MAX_PENDING = 1024;
/** How long requests wait for a silent source. */
const ANSWER_MS = 5000;

interface Pending {
  readonly timer: PatientTimeout;
  /** The workers that have the requests. */
  readonly workers: Set<number>;
}

const logger = getLogger('router');

export class PendingHosts {
  readonly #where: string;
  readonly #stats: Scope;
  readonly #abandoned: (name: string) => void;
  /** By name, oldest first. */
  readonly #pending = new Map<string, Pending>();
  /** The overflow has been logged. */
  #isFull = false;

  /**
   * `where`: prefix of the names, for the log. `stats`: of the layout AwaitedHostStats. `abandoned` is called with a name that is
   * no longer awaited, and must remove it.
   */
  constructor(where: string, stats: Scope, abandoned: (name: string) => void) {
    this.#where = where;
    this.#stats = stats;
    this.#abandoned = abandoned;
  }

  get isEmpty(): boolean {
    return this.#pending.size === 0;
  }

  /** Adds a worker to those that wait. Returns false when none has waited for the name so far. */
  join(name: string, worker: number): boolean {
    const pending = this.#pending.get(name);
    pending?.workers.add(worker);
    return pending !== undefined;
  }

  /** Adds the first worker that waits for the name. */
  add(name: string, worker: number): void {
    if (this.#pending.size >= MAX_PENDING) this.#abandonOldest();
    const timer = new PatientTimeout(() => this.#abandoned(name), ANSWER_MS);
    this.#pending.set(name, { timer, workers: new Set([worker]) });
  }

  /** Removes a worker. Returns true when no other one waits. */
  leave(name: string, worker: number): boolean {
    const workers = this.#pending.get(name)?.workers;
    return workers?.delete(worker) === true && workers.size === 0 && this.remove(name);
  }

  /** Removes a name. Returns false when it was not awaited. */
  remove(name: string): boolean {
    const pending = this.#pending.get(name);
    if (pending === undefined) return false;
    pending.timer.clear();
    this.#pending.delete(name);
    if (this.#pending.size === 0) this.#isFull = false;
    return true;
  }

  abandonAll(): void {
    for (const name of [...this.#pending.keys()]) this.#abandoned(name);
  }

  #abandonOldest(): void {
    this.#stats.increment(AwaitedHostStats.at.hosts_overflow);
    if (!this.#isFull) {
      this.#isFull = true;
      logger.warning(
        `${MAX_PENDING} virtual hosts of '${shownName(this.#where)}' are requested at the same time: older ones count as missing`,
      );
    }
    for (const name of this.#pending.keys()) return this.#abandoned(name);
  }
}
