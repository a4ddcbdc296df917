// Checks a host by TCP: that it can be connected to, or that it answers what is expected.

import { messageOf } from '../../common/errors/errors.js';
import type { ConnectStep } from '../../io/shim.js';
import { Timer } from '../../io/time/timing-wheel.js';
import type { ConnectionHandler } from '../../io/transport/connection-handler.js';
import type { CallingThread } from '../calling-thread.js';
import { connectFailureText } from '../pool-failure.js';
import type { CheckTarget } from './check-target.js';
import type { Checker, OnChecked } from './checker.js';
import type { TcpCheckSpec } from './health-check-spec.js';
import { Outcome } from './host-health.js';
import { PayloadSearch } from './payload-search.js';

/** Bytes that go out at once. */
const PIECE = 16 * 1024;

export interface TcpCheckerOptions {
  readonly spec: TcpCheckSpec;
  readonly timeoutMs: number;
  readonly reusesConnection: boolean;
}

export class TcpChecker implements Checker, ConnectionHandler {
  readonly #caller: CallingThread;
  readonly #target: CheckTarget;
  readonly #spec: TcpCheckSpec;
  readonly #timeoutMs: number;
  /** A host that speaks first does so once a connection. */
  readonly #reusesConnection: boolean;
  readonly #onChecked: OnChecked;
  readonly #timer = new Timer<TcpChecker>(this, onTimeout);
  #search: PayloadSearch | undefined;
  #id = NO_CONNECTION;
  #isConnected = false;
  /** It was asked on the connection of the check before: if that ends, the host may not have heard it. */
  #mayAskAgain = false;
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
    this.#mayAskAgain = this.#id !== NO_CONNECTION;
    if (this.#mayAskAgain) this.#ask();
    else this.#connect();
  }

  close(): void {
    this.#caller.begin();
    this.#isChecking = false;
    this.#target.cluster.thread.wheel.cancel(this.#timer);
    this.#disconnect();
  }

  /** What is expected has not come in time. */
  timedOut(): void {
    const reason = this.#isConnected
      ? 'it does not send what is expected in time'
      : 'it cannot be connected to in time';
    this.#disconnect();
    this.#ended(Outcome.Timeout, reason);
  }

  // ── ConnectionHandler ────────────────────────────────────────────────────────────────────────────────────────────

  onConnected(): void {
    this.#isConnected = true;
    this.#ask();
    if (this.#spec.receive.length === 0) this.#passed('it can be connected to');
  }

  onData(offset: number, length: number): void {
    if (!this.#isChecking || this.#search === undefined) return;
    this.#mayAskAgain = false;
    const { memory } = this.#target.cluster.thread;
    if (this.#search.take(memory.bytes.subarray(offset, offset + length))) this.#passed('it sends what is expected');
  }

  onEnd(): void {
    this.#lost('it has closed the connection');
  }

  onReset(errno: number, step: ConnectStep): void {
    const { spec } = this.#target.cluster;
    this.#lost(this.#isConnected ? 'it has reset the connection' : connectFailureText(spec, errno, step));
  }

  onBlocked(): void {}

  onDrained(): void {}

  onFault(): void {
    this.#lost('an internal error');
  }

  // ── Inside ───────────────────────────────────────────────────────────────────────────────────────────────────────

  #connect(): void {
    const { cluster, host } = this.#target;
    try {
      this.#id = cluster.thread.transport.connect(host.sockaddr, cluster.spec, cluster.bufferLimits, this);
    } catch (error) {
      this.#ended(Outcome.NetworkFailure, messageOf(error));
    }
  }

  #ask(): void {
    this.#search = new PayloadSearch(this.#spec.receive);
    const { memory, transport } = this.#target.cluster.thread;
    const { send } = this.#spec;
    for (let at = 0; send !== undefined && at < send.length; at += PIECE) {
      const piece = send.subarray(at, at + PIECE);
      const offset = memory.scratch(piece.length);
      memory.bytes.set(piece, offset);
      transport.send(this.#id, offset, piece.length);
    }
  }

  #passed(reason: string): void {
    if (!this.#reusesConnection) this.#disconnect();
    this.#ended(Outcome.Passed, reason);
  }

  #lost(reason: string): void {
    this.#disconnect();
    if (!this.#isChecking || !this.#mayAskAgain) return this.#ended(Outcome.NetworkFailure, reason);
    this.#mayAskAgain = false;
    this.#connect();
  }

  #disconnect(): void {
    const id = this.#id;
    this.#id = NO_CONNECTION;
    this.#isConnected = false;
    this.#search = undefined;
    if (id !== NO_CONNECTION) this.#target.cluster.thread.transport.close(id, FLUSH_MS, 0);
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

const NO_CONNECTION = -1;
/** What was sent without an answer to wait for is to arrive before the end. */
const FLUSH_MS = 1000;
