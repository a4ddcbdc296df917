// A one-way byte stream to a host of a cluster by TCP. If the connection breaks, it reconnects at the next write. Nothing waits
// for the host: when too many bytes are pending, the connection is considered dead and the pending bytes are lost.

import { setTimeout as sleep } from 'node:timers/promises';
import { ClusterStats } from '../../stats/layouts/cluster.js';
import type { CallingThread } from '../calling-thread.js';
import type { ClusterReference } from '../cluster-manager.js';
import { UpstreamSocket, type UpstreamSocketEvents } from './upstream-socket.js';

const PIECES_PER_TURN = 8;
/** Maximum of bytes pending for the host. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;
/** Bytes of one send(); longer pieces are divided. */
const PIECE = 16 * 1024;
/** How long close() waits for pending bytes, and how often it polls. */
const CLOSE_TIMEOUT_MS = 900;
const POLL_MS = 5;

export interface ClusterStreamEvents {
  /** Called when a piece was passed to the connection. */
  onSent(): void;
  /**
   * Called when connecting fails or the connection ends. `pieces` is the number of lost pieces: the queued ones, and the one
   * being sent.
   */
  onLost(reason: string, pieces: number): void;
}

export class ClusterStream implements UpstreamSocketEvents {
  readonly #thread: CallingThread;
  readonly #reference: ClusterReference;
  readonly #events: ClusterStreamEvents;
  #socket: UpstreamSocket | undefined;
  #isConnected = false;
  #isBlocked = false;
  #isScheduled = false;
  #waiting: Uint8Array[] = [];
  #waitingBytes = 0;

  /** Connects at open() or at the first write(). */
  constructor(thread: CallingThread, cluster: string, events: ClusterStreamEvents) {
    this.#thread = thread;
    this.#reference = thread.reference(cluster);
    this.#events = events;
  }

  /** Connects, unless a connection exists or is being made. */
  open(): void {
    if (this.#socket === undefined) this.#connect();
  }

  /** Queues `bytes` for sending. The caller must not change them any more. */
  write(bytes: Uint8Array): void {
    this.open();
    if (this.#socket === undefined) return;
    if (this.#waitingBytes + bytes.length > MAX_WAITING_BYTES) return this.#overflow();
    for (let at = 0; at < bytes.length; at += PIECE) this.#waiting.push(bytes.subarray(at, at + PIECE));
    this.#waitingBytes += bytes.length;
    this.#pump();
  }

  /** Closes the connection, after waiting up to CLOSE_TIMEOUT_MS for pending bytes. */
  async close(): Promise<void> {
    const deadline = performance.now() + CLOSE_TIMEOUT_MS;
    while (this.#isSending && performance.now() < deadline) await sleep(POLL_MS);
    this.#thread.begin();
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

  upstreamConnectFailed(detail: string): void {
    this.#lose(detail || 'the connect timed out');
  }

  /** Ignores what the host sends. */
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
    this.#thread.begin();
    const cluster = this.#reference.current?.clusterOfHost();
    const host = cluster?.pickHost();
    if (cluster === undefined || host === undefined) return this.#lose('the cluster has no host');
    this.#isBlocked = false;
    this.#isConnected = false;
    this.#socket = UpstreamSocket.sheds(cluster) ? undefined : UpstreamSocket.connect(this, cluster, host);
    if (this.#socket === undefined) this.#lose('a circuit breaker of the cluster is open');
  }

  #pump(): void {
    if (this.#isScheduled) return;
    const { memory } = this.#thread.begin();
    // onBlocked() comes in a later turn, so one turn must not send everything.
    for (let sent = 0; this.#socket !== undefined && this.#isConnected && !this.#isBlocked; sent++) {
      if (sent === PIECES_PER_TURN) return this.#pumpLater();
      const piece = this.#waiting.shift();
      if (piece === undefined) return;
      this.#waitingBytes -= piece.length;
      const offset = memory.scratch(piece.length);
      memory.bytes.set(piece, offset);
      this.#socket.send(offset, piece.length);
      this.#events.onSent();
    }
  }

  #pumpLater(): void {
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#pump();
    });
  }

  #overflow(): void {
    this.#reference.current?.stats.increment(ClusterStats.at.upstream_cx_overflow);
    this.#thread.begin();
    this.#socket?.reset();
    this.#lose('the host does not read');
  }

  #lose(reason: string): void {
    const lost = this.#waiting.length + 1;
    this.#socket = undefined;
    this.#waiting = [];
    this.#waitingBytes = 0;
    this.#events.onLost(reason, lost);
  }
}
