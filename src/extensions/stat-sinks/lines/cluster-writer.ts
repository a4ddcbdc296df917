// Lines to a host of a cluster by TCP: one connection, kept between flushes, made anew by the flush after it broke.

import { setTimeout as sleep } from 'node:timers/promises';
import {
  type CallingThread,
  type Cluster,
  type ClusterReference,
  ClusterStats,
  UpstreamSocket,
  type UpstreamSocketEvents,
} from '../../sdk.js';
import type { Condition } from '../condition.js';
import type { LineWriter } from './line-sink.js';

/** Lines are gathered to pieces of about this many characters. */
const PIECE = 16 * 1024;
const PIECES_PER_TURN = 8;
/** Bytes that may wait for the host. When more come it is taken for dead. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;
/** How long the host may take for the rest when the server ends, and how often that is looked at. */
const LAST_MS = 900;
const LOOK_MS = 5;

export class ClusterWriter implements LineWriter, UpstreamSocketEvents {
  readonly #calls: CallingThread;
  readonly #reference: ClusterReference;
  readonly #condition: Condition;
  #socket: UpstreamSocket | undefined;
  #isConnected = false;
  #isBlocked = false;
  #text = '';
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #isLost = false;

  constructor(calls: CallingThread, cluster: string, condition: Condition) {
    this.#calls = calls;
    this.#reference = calls.reference(cluster);
    this.#condition = condition;
  }

  begin(): void {
    this.#condition.begin();
    this.#isLost = false;
    if (this.#socket === undefined) this.#connect();
  }

  line(text: string): void {
    if (this.#isLost) return;
    this.#text += `${text}\n`;
    if (this.#text.length >= PIECE) this.#put();
  }

  /** There is always some, or the host is taken for dead. */
  room(): undefined {}

  end(): void {
    if (!this.#isLost) this.#put();
  }

  /** What is on its way to the host gets a moment. */
  async close(): Promise<void> {
    const deadline = performance.now() + LAST_MS;
    while (this.#isSending && performance.now() < deadline) await sleep(LOOK_MS);
    this.#socket?.close();
    this.#socket = undefined;
  }

  get #isSending(): boolean {
    return this.#socket !== undefined && (this.#waitingBytes > 0 || this.#socket.pendingBytes > 0);
  }

  // ── UpstreamSocketEvents ─────────────────────────────────────────────────────────────────────────────────────────

  upstreamConnected(): void {
    this.#isConnected = true;
    this.#pump();
  }

  upstreamConnectFailed(reason: string, isTimeout: boolean): void {
    this.#lose(isTimeout ? 'the connect timeout is over' : reason);
  }

  /** Statsd servers say nothing. */
  upstreamData(): void {}

  upstreamEnded(): void {
    this.#socket?.close();
    this.#lose('the host has closed the connection');
  }

  upstreamReset(): void {
    this.#lose('the host has reset the connection');
  }

  upstreamBlocked(): void {
    this.#isBlocked = true;
  }

  upstreamDrained(): void {
    this.#isBlocked = false;
    this.#pump();
  }

  upstreamFault(): void {
    this.#socket?.reset();
    this.#lose('an internal error');
  }

  // ── Sending ──────────────────────────────────────────────────────────────────────────────────────────────────────

  #connect(): void {
    this.#calls.begin();
    const cluster = this.#reference.current;
    const host = cluster?.pickHost();
    if (cluster === undefined || host === undefined) return this.#lose('the cluster has no host');
    this.#isBlocked = false;
    this.#isConnected = false;
    this.#socket = UpstreamSocket.connect(this, cluster, host);
    if (this.#socket === undefined) this.#lose('a circuit breaker of the cluster is open');
  }

  #put(): void {
    const piece = Buffer.from(this.#text);
    this.#text = '';
    if (this.#waitingBytes + piece.length > MAX_WAITING_BYTES) return this.#overflow(this.#reference.current);
    this.#waiting.push(piece);
    this.#waitingBytes += piece.length;
    this.#pump();
  }

  #pump(): void {
    const { memory } = this.#calls.begin();
    // That the host is slow shows in a later turn.
    for (let sent = 0; this.#socket !== undefined && this.#isConnected && !this.#isBlocked; sent++) {
      if (sent === PIECES_PER_TURN) return void setImmediate(() => this.#pump());
      const piece = this.#waiting.shift();
      if (piece === undefined) return;
      this.#waitingBytes -= piece.length;
      const offset = memory.scratch(piece.length);
      memory.bytes.set(piece, offset);
      this.#socket.send(offset, piece.length);
      this.#condition.sent();
    }
  }

  #overflow(cluster: Cluster | undefined): void {
    cluster?.stats.increment(ClusterStats.at.upstream_cx_overflow);
    this.#socket?.reset();
    this.#lose('the host does not read');
  }

  /** There is no connection, and what waited for it is lost; so is the rest of the flush. */
  #lose(reason: string): void {
    this.#socket = undefined;
    this.#isLost = true;
    this.#condition.fails(reason, this.#waiting.length + 1);
    this.#waiting = [];
    this.#waitingBytes = 0;
    this.#text = '';
  }
}
