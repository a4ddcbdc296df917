// One worker's part in the hand-over of established connections (--hand-over-connections): its own leave for the child process,
// those of the parent process arrive.

import type { NativeShim } from '../../io/shim.js';
import type { Transport } from '../../io/transport/transport.js';
import { HandOverStats } from '../../stats/layouts/hand-over.js';
import type { Scope } from '../../stats/thread-stats.js';
import type { WorkerListeners } from '../listeners/worker-listeners.js';
import type { ThreadScopes } from '../stats/thread-scopes.js';
import { WorkerArrivals } from './worker-arrivals.js';
import { WorkerDepartures } from './worker-departures.js';

export class HandOver {
  readonly #shim: NativeShim;
  readonly #transport: Transport;
  readonly #scopes: ThreadScopes;
  readonly #listeners: WorkerListeners;
  #departures: WorkerDepartures | undefined;
  #arrivals: WorkerArrivals | undefined;

  constructor(shim: NativeShim, transport: Transport, scopes: ThreadScopes, listeners: WorkerListeners) {
    this.#shim = shim;
    this.#transport = transport;
    this.#scopes = scopes;
    this.#listeners = listeners;
  }

  /** Begins to hand connections over on these channels. `descriptors` is the maximum in flight per channel. */
  depart(channels: readonly number[], descriptors: number): void {
    const over = () => this.#listeners.depart(undefined);
    const departures = new WorkerDepartures(this.#shim, this.#transport, this.#stats, channels, descriptors, over);
    this.#departures?.close();
    this.#departures = departures;
    this.#transport.beginTurn();
    this.#listeners.depart(departures);
    departures.start();
  }

  /** Begins to receive connections on these channels. */
  arrive(channels: readonly number[]): void {
    this.#arrivals?.close();
    this.#arrivals = new WorkerArrivals(this.#shim, this.#transport, this.#listeners, this.#stats, channels);
  }

  /** Called when the thread ends. */
  close(): void {
    this.#departures?.close();
    this.#arrivals?.close();
  }

  get #stats(): Scope {
    return this.#scopes.find('server.hand_over.', HandOverStats);
  }
}
