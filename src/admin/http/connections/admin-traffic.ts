// Counts the admin interface's own connections and requests: http.admin.*, listener.admin.*.

import type { Socket } from 'node:net';
import { AdminHttpStats, ListenerHttpStats } from '../../../stats/layouts/http.js';
import { AdminListenerStats, ListenerStats, ListenerWorkerStats } from '../../../stats/layouts/listener.js';
import type { StatsStore } from '../../../stats/store.js';
import type { Scope } from '../../../stats/thread-stats.js';

interface OpenConnection {
  readonly startedMs: number;
  /** Unknown before the first bytes. */
  isHttp2: boolean | undefined;
  requests: number;
  /** Bytes counted so far. */
  received: number;
  sent: number;
}

const HTTP = AdminHttpStats.at;
const LISTENER = ListenerStats.at;

export class AdminTraffic {
  readonly #http: Scope;
  readonly #listener: Scope;
  readonly #listenerHttp: Scope;
  readonly #thread: Scope;
  readonly #own: Scope;
  readonly #open = new Map<Socket, OpenConnection>();

  /** Creates the scopes: their stats exist with value 0 before the first request. */
  constructor(store: StatsStore) {
    this.#http = store.scope(store.addScope('http.admin.', AdminHttpStats));
    this.#listener = store.scope(store.addScope('listener.admin.', ListenerStats));
    this.#listenerHttp = store.scope(store.addScope('listener.admin.http.admin.', ListenerHttpStats));
    this.#own = store.scope(store.addScope('listener.admin.', AdminListenerStats));
    this.#thread = store.scope(store.addScope('listener.admin.main_thread.', ListenerWorkerStats));
  }

  /** Counts an accepted connection, until closed(). */
  connected(socket: Socket): void {
    this.#open.set(socket, {
      startedMs: performance.now(),
      isHttp2: undefined,
      requests: 0,
      received: 0,
      sent: 0,
    });
    this.#http.increment(HTTP.downstream_cx_total);
    this.#http.add(HTTP.downstream_cx_active, 1);
    this.#listener.increment(LISTENER.downstream_cx_total);
    this.#listener.add(LISTENER.downstream_cx_active, 1);
    this.#thread.increment(ListenerWorkerStats.at.downstream_cx_total);
    this.#thread.add(ListenerWorkerStats.at.downstream_cx_active, 1);
  }

  /** Counts a connection that was refused because the process has too many. */
  overflowed(): void {
    this.#listener.increment(LISTENER.downstream_global_cx_overflow);
  }

  /** Counts a connection that was refused because all connections of the admin interface are busy. */
  refused(): void {
    this.#listener.increment(LISTENER.downstream_cx_overflow);
  }

  /** Counts an idle connection that was closed to make room for another. */
  evicted(): void {
    this.#own.increment(AdminListenerStats.at.downstream_cx_evicted);
  }

  /** Counts a connection that was closed because it was idle for too long. */
  idleTimedOut(): void {
    this.#http.increment(HTTP.downstream_cx_idle_timeout);
  }

  /** Counts a request whose head did not arrive in time. */
  headTimedOut(): void {
    this.#http.increment(HTTP.downstream_rq_header_timeout);
  }

  /** Counts a connection that was closed because its client reset too many requests. */
  resetTooOften(): void {
    this.#http.increment(HTTP.downstream_rq_too_many_premature_resets);
  }

  /** Called when the protocol of the connection is known. */
  protocolDetected(socket: Socket, isHttp2: boolean): void {
    const connection = this.#open.get(socket);
    if (connection === undefined) return;
    connection.isHttp2 = isHttp2;
    this.#http.increment(isHttp2 ? HTTP.downstream_cx_http2_total : HTTP.downstream_cx_http1_total);
    this.#http.add(isHttp2 ? HTTP.downstream_cx_http2_active : HTTP.downstream_cx_http1_active, 1);
  }

  /** Counts received data that is not valid HTTP. */
  protocolError(): void {
    this.#http.increment(HTTP.downstream_cx_protocol_error);
  }

  requestBegan(socket: Socket): void {
    const connection = this.#open.get(socket);
    if (connection !== undefined) connection.requests++;
    this.#http.increment(HTTP.downstream_rq_total);
    this.#http.increment(
      connection?.isHttp2 === true ? HTTP.downstream_rq_http2_total : HTTP.downstream_rq_http1_total,
    );
    this.#http.add(HTTP.downstream_rq_active, 1);
  }

  /** Counts the end of a request. `status`: of the response; 0 if the client disconnected before it. */
  requestEnded(socket: Socket, status: number, durationMs: number): void {
    const connection = this.#open.get(socket);
    if (connection !== undefined) {
      connection.requests--;
      this.#countBytes(socket, connection);
    }
    this.#http.add(HTTP.downstream_rq_active, -1);
    if (status === 0) {
      this.#http.increment(HTTP.downstream_rq_rx_reset);
      return;
    }
    this.#http.record(HTTP.downstream_rq_time, Math.floor(durationMs));
    this.#http.increment(HTTP.downstream_rq_completed);
    this.#listenerHttp.increment(ListenerHttpStats.at.downstream_rq_completed);
    const statusClass = Math.floor(status / 100);
    this.#http.increment(CLASSES[statusClass]!);
    this.#listenerHttp.increment(LISTENER_CLASSES[statusClass]!);
    if (status === 413) this.#http.increment(HTTP.downstream_rq_too_large);
  }

  /** Counts the end of a connection. `byPeer`: the client closed it. */
  closed(socket: Socket, byPeer: boolean): void {
    const connection = this.#open.get(socket);
    if (connection === undefined) return;
    this.#open.delete(socket);
    this.#countBytes(socket, connection);
    const lengthMs = Math.floor(performance.now() - connection.startedMs);
    this.#http.increment(HTTP.downstream_cx_destroy);
    this.#http.increment(byPeer ? HTTP.downstream_cx_destroy_remote : HTTP.downstream_cx_destroy_local);
    this.#http.add(HTTP.downstream_cx_active, -1);
    this.#http.record(HTTP.downstream_cx_length_ms, lengthMs);
    if (connection.requests > 0) {
      const { downstream_cx_destroy_remote_active_rq: remote, downstream_cx_destroy_local_active_rq: local } = HTTP;
      this.#http.increment(HTTP.downstream_cx_destroy_active_rq);
      this.#http.increment(byPeer ? remote : local);
    }
    if (connection.isHttp2 !== undefined) {
      const active = connection.isHttp2 ? HTTP.downstream_cx_http2_active : HTTP.downstream_cx_http1_active;
      this.#http.add(active, -1);
    }
    this.#listener.increment(LISTENER.downstream_cx_destroy);
    this.#listener.add(LISTENER.downstream_cx_active, -1);
    this.#listener.record(LISTENER.downstream_cx_length_ms, lengthMs);
    this.#thread.add(ListenerWorkerStats.at.downstream_cx_active, -1);
  }

  #countBytes(socket: Socket, connection: OpenConnection): void {
    this.#http.add(HTTP.downstream_cx_rx_bytes_total, socket.bytesRead - connection.received);
    this.#http.add(HTTP.downstream_cx_tx_bytes_total, socket.bytesWritten - connection.sent);
    connection.received = socket.bytesRead;
    connection.sent = socket.bytesWritten;
  }
}

/** Indexed by the first digit of the status. */
const CLASSES = [
  HTTP.downstream_rq_1xx,
  HTTP.downstream_rq_1xx,
  HTTP.downstream_rq_2xx,
  HTTP.downstream_rq_3xx,
  HTTP.downstream_rq_4xx,
  HTTP.downstream_rq_5xx,
] as const;
const LISTENER_CLASSES = [
  ListenerHttpStats.at.downstream_rq_1xx,
  ListenerHttpStats.at.downstream_rq_1xx,
  ListenerHttpStats.at.downstream_rq_2xx,
  ListenerHttpStats.at.downstream_rq_3xx,
  ListenerHttpStats.at.downstream_rq_4xx,
  ListenerHttpStats.at.downstream_rq_5xx,
] as const;
