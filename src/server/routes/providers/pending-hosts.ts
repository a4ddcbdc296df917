// Virtual hosts that requests on the workers wait for, until it is known whether they exist or their source has said nothing
// for too long.

import { shownName } from '../../../common/text/shown.js';
import { PatientTimeout } from '../../../common/time/patient-timeout.js';
import { getLogger } from '../../../log/logger.js';
import { AwaitedHostStats } from '../../../stats/layouts/xds.js';
import type { Scope } from '../../../stats/thread-stats.js';

/** Hosts that may be asked for at one time: clients choose their names. Another one takes the place of the oldest. */
const MOST_PENDING = 1024;
/** How long requests wait for a source that says nothing. */
const ANSWER_MS = 5000;

interface Pending {
  readonly timer: PatientTimeout;
  /** Those that have the requests. */
  readonly workers: Set<number>;
}

const logger = getLogger('router');

export class PendingHosts {
  readonly #where: string;
  readonly #stats: Scope;
  readonly #unanswered: (name: string) => void;
  /** By name; the oldest come first. */
  readonly #pending = new Map<string, Pending>();
  /** It has been said that there are too many. */
  #isFull = false;

  /**
   * `where`: names them all in the log. `stats`: of the layout AwaitedHostStats. `unanswered` is called with a name that is
   * waited for in vain, and must remove it.
   */
  constructor(where: string, stats: Scope, unanswered: (name: string) => void) {
    this.#where = where;
    this.#stats = stats;
    this.#unanswered = unanswered;
  }

  get isEmpty(): boolean {
    return this.#pending.size === 0;
  }

  /** This worker waits as well; false when nobody has waited for the name so far. */
  join(name: string, worker: number): boolean {
    const pending = this.#pending.get(name);
    pending?.workers.add(worker);
    return pending !== undefined;
  }

  /** This worker is the first to wait. */
  add(name: string, worker: number): void {
    if (this.#pending.size >= MOST_PENDING) this.#giveOldestUp();
    const timer = new PatientTimeout(() => this.#unanswered(name), ANSWER_MS);
    this.#pending.set(name, { timer, workers: new Set([worker]) });
  }

  /** This worker waits no longer; true when no other does. */
  leave(name: string, worker: number): boolean {
    const workers = this.#pending.get(name)?.workers;
    return workers?.delete(worker) === true && workers.size === 0 && this.remove(name);
  }

  /** Nobody waits any longer; false when nobody has. */
  remove(name: string): boolean {
    const pending = this.#pending.get(name);
    if (pending === undefined) return false;
    pending.timer.clear();
    this.#pending.delete(name);
    if (this.#pending.size === 0) this.#isFull = false;
    return true;
  }

  giveAllUp(): void {
    for (const name of [...this.#pending.keys()]) this.#unanswered(name);
  }

  #giveOldestUp(): void {
    this.#stats.increment(AwaitedHostStats.at.hosts_overflow);
    if (!this.#isFull) {
      this.#isFull = true;
      logger.warning(
        `${MOST_PENDING} virtual hosts are asked for at '${shownName(this.#where)}': older ones count as missing`,
      );
    }
    for (const name of this.#pending.keys()) return this.#unanswered(name);
  }
}
