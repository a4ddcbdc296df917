// Checks a host by TCP: that it accepts connections, or that it sends the expected payloads.

import { messageOf } from '../../common/errors/errors.js';
import { Timer } from '../../io/time/timing-wheel.js';
import type { CallingThread } from '../calling-thread.js';
import { PoolFailure } from '../pool-failure.js';
import type { CheckTarget } from './check-target.js';
import type { Checker, OnChecked } from './checker.js';
import type { TcpCheckSpec } from './health-check-spec.js';
import { Outcome } from './host-health.js';
import { PayloadSearch } from './payload-search.js';
import { TcpCheckConnection, type TcpCheckEvents } from './tcp-check-connection.js';

/** Bytes of one send(). */
const PIECE = 16 * 1024;

export interface TcpCheckerOptions {
  readonly spec: TcpCheckSpec;
  readonly timeoutMs: number;
  readonly reusesConnection: boolean;
}

export class TcpChecker implements Checker, TcpCheckEvents {
  readonly #caller: CallingThread;
  readonly #target: CheckTarget;
  readonly #spec: TcpCheckSpec;
  readonly #timeoutMs: number;
  /** Only with payloads in both directions: a host that sends first does so once per connection. */
  readonly #reusesConnection: boolean;
  readonly #onChecked: OnChecked;
  readonly #timer = new Timer<TcpChecker>(this, onTimeout);
  #search: PayloadSearch | undefined;
  #connection: TcpCheckConnection | undefined;
  /**
   * The payload was sent on the previous check's connection. If that ends, the host may not have received it, and it is sent
   * again.
   */
  #canRetry = false;
  #isChecking = false;

  constructor(caller: CallingThread, target: CheckTarget, options: TcpCheckerOptions, onChecked: OnChecked) {
    const { reusesConnection, spec, timeoutMs } = options;
    this.#caller = caller;
    this.#target = target;
    this.#spec = spec;
    this.#timeoutMs = timeoutMs;
    this.#reusesConnection = reusesConnection && spec.send !== undefined && spec.receive.length > 0;
    this.#onChecked = onChecked;
  }

  begin(): void {
    const { wheel } = this.#caller.begin();
    this.#isChecking = true;
    wheel.schedule(this.#timer, this.#timeoutMs);
    this.#canRetry = this.#connection !== undefined;
    if (this.#canRetry) this.#sendPayload();
    else this.#connect();
  }

  close(): void {
    this.#caller.begin();
    this.#isChecking = false;
    this.#target.cluster.thread.wheel.cancel(this.#timer);
    this.#disconnect();
  }

  /** Called when the expected payloads did not come in time. */
  timedOut(): void {
    const reason = this.#connection?.isConnected
      ? 'it does not send what is expected in time'
      : 'it cannot be connected to in time';
    this.#disconnect();
    this.#ended(Outcome.Timeout, reason);
  }

  // ── The connection ───────────────────────────────────────────────────────────────────────────────────────────────

  connected(): void {
    this.#sendPayload();
    if (this.#spec.receive.length === 0) this.#passed('it can be connected to');
  }

  connectFailed(failure: PoolFailure, detail: string): void {
    if (failure === PoolFailure.ConnectTimeout) this.timedOut();
    else this.#lost(detail);
  }

  received(offset: number, length: number): void {
    if (!this.#isChecking || this.#search === undefined) return;
    this.#canRetry = false;
    const { memory } = this.#target.cluster.thread;
    if (this.#search.take(memory.bytes.subarray(offset, offset + length))) this.#passed('it sends what is expected');
  }

  lost(reason: string): void {
    this.#lost(reason);
  }

  // ── Inside ───────────────────────────────────────────────────────────────────────────────────────────────────────

  #connect(): void {
    try {
      this.#connection = new TcpCheckConnection(this.#target, this);
    } catch (error) {
      this.#ended(Outcome.NetworkFailure, messageOf(error));
    }
  }

  #sendPayload(): void {
    this.#search = new PayloadSearch(this.#spec.receive);
    const { memory } = this.#target.cluster.thread;
    const { send } = this.#spec;
    for (let at = 0; send !== undefined && at < send.length; at += PIECE) {
      const piece = send.subarray(at, at + PIECE);
      const offset = memory.scratch(piece.length);
      memory.bytes.set(piece, offset);
      this.#connection!.send(offset, piece.length);
    }
  }

  #passed(reason: string): void {
    if (!this.#reusesConnection) this.#disconnect();
    this.#ended(Outcome.Passed, reason);
  }

  #lost(reason: string): void {
    this.#disconnect();
    if (!this.#isChecking || !this.#canRetry) return this.#ended(Outcome.NetworkFailure, reason);
    this.#canRetry = false;
    this.#connect();
  }

  #disconnect(): void {
    const connection = this.#connection;
    this.#connection = undefined;
    this.#search = undefined;
    connection?.close();
  }

  #ended(outcome: Outcome, reason: string): void {
    if (!this.#isChecking) return;
    this.#isChecking = false;
    this.#target.cluster.thread.wheel.cancel(this.#timer);
    this.#onChecked(outcome, reason);
  }
}

function onTimeout(checker: TcpChecker): void {
  checker.timedOut();
}
