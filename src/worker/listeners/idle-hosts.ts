// Connections to hosts that nobody uses keep descriptors for which clients may wait: they are closed as long as that is so.

import type { WorkerContext } from '../../extensions/factories.js';
import { Timer } from '../../io/time/timing-wheel.js';

/**
 * From then on a connection counts as unused; and how often they are looked for. One that serves requests again and again stays, so
 * that however long the shortage lasts no host is connected to anew for each request.
 */
const IDLE_MS = 1000;

export class IdleHosts {
  readonly #context: Pick<WorkerContext, 'clusters' | 'transport' | 'wheel'>;
  readonly #timer = new Timer<IdleHosts>(this, (self) => self.#lookAgain());

  constructor(context: Pick<WorkerContext, 'clusters' | 'transport' | 'wheel'>) {
    this.#context = context;
  }

  /** A listener cannot accept a connection for want of descriptors. */
  makeRoom(): void {
    if (!this.#timer.isScheduled) this.#close();
  }

  /** Others have become idle meanwhile, and what was closed may not have been enough. */
  #lookAgain(): void {
    if (this.#context.transport.isStarved) this.#close();
  }

  #close(): void {
    const { clusters, wheel } = this.#context;
    wheel.schedule(this.#timer, IDLE_MS);
    clusters.closeIdle(IDLE_MS);
  }
}
