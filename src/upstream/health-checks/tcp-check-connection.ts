// The connection of a TCP check.

import { HostConnection } from '../connections/host-connection.js';
import type { PoolFailure } from '../pool-failure.js';
import type { CheckTarget } from './check-target.js';

/** The callbacks of the connection to its check. */
export interface TcpCheckEvents {
  connected(): void;
  /** Called when the connect failed; `detail` is '' after a timeout. */
  connectFailed(failure: PoolFailure, detail: string): void;
  received(offset: number, length: number): void;
  /** Called when the connection has ended or failed; the check must close it. */
  lost(reason: string): void;
}

/** Payloads that expect no response must be delivered before the connection ends. */
const FLUSH_MS = 1000;

export class TcpCheckConnection extends HostConnection {
  readonly #events: TcpCheckEvents;

  constructor({ cluster, host, options }: CheckTarget, events: TcpCheckEvents) {
    super(cluster, host, undefined, options);
    this.#events = events;
  }

  close(): void {
    if (!this.isClosed) this.closeInOrder(FLUSH_MS, 0);
  }

  protected connected(): void {
    this.#events.connected();
  }

  protected connectFailed(failure: PoolFailure, detail: string): void {
    this.#events.connectFailed(failure, detail);
  }

  protected received(offset: number, length: number): void {
    this.#events.received(offset, length);
  }

  protected hostEnded(): void {
    this.#events.lost('it has closed the connection');
  }

  protected broken(): void {
    this.#events.lost('it has reset the connection');
  }

  onFault(): void {
    this.#events.lost('an internal error');
  }

  onBlocked(): void {}

  onDrained(): void {}

  protected ended(): void {}

  protected timerFired(): void {}
}
