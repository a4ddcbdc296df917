// Closes idle connections to hosts while descriptors are short: clients may be waiting for them.

import type { WorkerContext } from '../../extensions/factories.js';
import { Timer } from '../../io/time/timing-wheel.js';

/**
 * Minimum idle time for closing, and the interval of the checks. Frequently used connections stay, so that a long shortage does
 * not lead to a connect per request.
 */
const IDLE_MS = 1000;

export class IdleHosts {
  readonly #context: Pick<WorkerContext, 'clusters' | 'transport' | 'wheel'>;
  readonly #timer = new Timer<IdleHosts>(this, (self) => self.#recheck());

  constructor(context: Pick<WorkerContext, 'clusters' | 'transport' | 'wheel'>) {
    this.#context = context;
  }

  /** Called when a listener cannot accept a connection because descriptors are exhausted. */
  makeRoom(): void {
    if (!this.#timer.isScheduled) this.#close();
  }

  /** Repeats the closing during a shortage: more connections may be idle, and the first round may not have been enough. */
  #recheck(): void {
    if (this.#context.transport.isStarved) this.#close();
  }

  #close(): void {
    const { clusters, wheel } = this.#context;
    wheel.schedule(this.#timer, IDLE_MS);
    clusters.closeIdle(IDLE_MS);
  }
}
