// One worker's part in the hand-over of established connections (--hand-over-connections): it sends its own to the child process
// and receives those of the parent process.

import type { NativeShim } from '../../io/shim.js';
import type { Transport } from '../../io/transport/transport.js';
import { HandOverStats } from '../../stats/layouts/hand-over.js';
import type { Scope } from '../../stats/thread-stats.js';
import type { WorkerListeners } from '../listeners/worker-listeners.js';
import type { ThreadScopes } from '../stats/thread-scopes.js';
import { HandOverReceiver } from './hand-over-receiver.js';
import { HandOverSender } from './hand-over-sender.js';

export class HandOver {
  readonly #shim: NativeShim;
  readonly #transport: Transport;
  readonly #scopes: ThreadScopes;
  readonly #listeners: WorkerListeners;
  #sender: HandOverSender | undefined;
  #receiver: HandOverReceiver | undefined;

  constructor(shim: NativeShim, transport: Transport, scopes: ThreadScopes, listeners: WorkerListeners) {
    this.#shim = shim;
    this.#transport = transport;
    this.#scopes = scopes;
    this.#listeners = listeners;
  }

  /** Begins to hand connections over on these channels. `descriptors` is the maximum in flight per channel. */
  startSending(channels: readonly number[], descriptors: number): void {
    const onEnd = () => this.#listeners.handOver(undefined);
    const sender = new HandOverSender(this.#shim, this.#transport, this.#stats, channels, descriptors, onEnd);
    this.#sender?.close();
    this.#sender = sender;
    this.#transport.beginTurn();
    this.#listeners.handOver(sender);
    sender.start();
  }

  /** Begins to receive connections on these channels. */
  startReceiving(channels: readonly number[]): void {
    this.#receiver?.close();
    this.#receiver = new HandOverReceiver(this.#shim, this.#transport, this.#listeners, this.#stats, channels);
  }

  /** Called when the thread ends. */
  close(): void {
    this.#sender?.close();
    this.#receiver?.close();
  }

  get #stats(): Scope {
    return this.#scopes.find('server.hand_over.', HandOverStats);
  }
}
