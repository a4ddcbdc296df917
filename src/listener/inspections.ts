// The sockets of one listener that its listener filters look at: how long that may take, what is counted, and how it ends.

import type { Timers } from '../io/time/timing-wheel.js';
import type { ConnectionHandler } from '../io/transport/connection-handler.js';
import type { Transport } from '../io/transport/transport.js';
import { ListenerStats } from '../stats/layouts/listener.js';
import type { Scope } from '../stats/thread-stats.js';
import { ConnectionList } from './connection-list.js';
import { InspectedSocket, type InspectionFailure, type InspectionOwner } from './inspected-socket.js';
import type { ListenerFilter } from './listener-filter.js';

export interface InspectionSettings {
  /** At least one. */
  readonly filters: readonly ListenerFilter[];
  /** How long they may wait for bytes; 0: for ever. */
  readonly timeoutMs: number;
  /** A connection goes on as it is when they have waited in vain. */
  readonly continuesOnTimeout: boolean;
  readonly timers: Timers;
}

export interface InspectionEvents {
  /** A filter chain is to take it: it is not looked at any more, and delivers nothing before the call returns. */
  onInspected(socket: InspectedSocket): void;
  /** It was closed. */
  onDropped(): void;
}

export class Inspections implements InspectionOwner {
  readonly filters: readonly ListenerFilter[];
  readonly mostBytes: number;
  readonly #settings: InspectionSettings;
  readonly #transport: Transport;
  readonly #stats: Scope;
  readonly #events: InspectionEvents;
  readonly #sockets = new ConnectionList<InspectedSocket>();

  /** `stats`: listener.<address>. */
  constructor(settings: InspectionSettings, transport: Transport, stats: Scope, events: InspectionEvents) {
    this.filters = settings.filters;
    this.mostBytes = settings.filters.reduce((sum, { mostBytes }) => sum + mostBytes, 0);
    this.#settings = settings;
    this.#transport = transport;
    this.#stats = stats;
    this.#events = events;
  }

  /** Looks at what a socket says that was just accepted; the peer's sockaddr stands in memory. */
  begin(id: number, offset: number, length: number): ConnectionHandler {
    const socket = new InspectedSocket(this, this.#transport, id, offset, length);
    this.#sockets.add(socket);
    this.#stats.increment(ListenerStats.at.downstream_pre_cx_active);
    const { timeoutMs, timers } = this.#settings;
    if (timeoutMs > 0) timers.reschedule(socket.timer, timeoutMs);
    return socket;
  }

  get count(): number {
    return this.#sockets.count;
  }

  passed(socket: InspectedSocket): void {
    this.#leave(socket);
    this.#transport.take(socket.id, socket.taken);
    this.#events.onInspected(socket);
  }

  failed(socket: InspectedSocket, why: InspectionFailure): void {
    if (why === 'remote_close') this.#stats.increment(ListenerStats.at.downstream_listener_filter_remote_close);
    if (why === 'error') this.#stats.increment(ListenerStats.at.downstream_listener_filter_error);
    this.#drop(socket);
  }

  timedOut(socket: InspectedSocket): void {
    this.#stats.increment(ListenerStats.at.downstream_pre_cx_timeout);
    if (this.#settings.continuesOnTimeout) this.passed(socket);
    else this.#drop(socket);
  }

  /** The listener is gone, and nobody would take what is found out. */
  close(): void {
    for (const socket of [...this.#sockets]) this.#drop(socket);
  }

  #drop(socket: InspectedSocket): void {
    this.#leave(socket);
    this.#transport.close(socket.id, 0, 0);
    this.#events.onDropped();
  }

  #leave(socket: InspectedSocket): void {
    this.#sockets.remove(socket);
    this.#settings.timers.cancel(socket.timer);
    this.#stats.decrement(ListenerStats.at.downstream_pre_cx_active);
  }
}
