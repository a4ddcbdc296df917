// The sockets of one listener that its listener filters inspect: their timeout, stats and outcome.

import type { Address } from '../io/addresses/address.js';
import type { Timers } from '../io/time/timing-wheel.js';
import type { ConnectionHandler } from '../io/transport/connection-handler.js';
import type { Transport } from '../io/transport/transport.js';
import { ListenerStats } from '../stats/layouts/listener.js';
import type { Scope } from '../stats/thread-stats.js';
import { ConnectionList } from './connection-list.js';
import { InspectedSocket, type InspectionFailure, type InspectionOwner } from './inspected-socket.js';
import type { ListenerFilter } from './listener-filter.js';

export interface InspectionSettings {
  /** Those of an internal listener may be none. */
  readonly filters: readonly ListenerFilter[];
  /** How long the filters may wait for bytes; 0: no limit. */
  readonly timeoutMs: number;
  /** After a timeout the connection is served without inspection. */
  readonly continuesOnTimeout: boolean;
  readonly timers: Timers;
}

export interface InspectionEvents {
  /** Called when a filter chain must take over the socket. It delivers nothing before the call returns. Returns the next handler. */
  onInspected(socket: InspectedSocket): ConnectionHandler | undefined;
  /** Called when the socket is about to be closed. */
  onDropped(socket: InspectedSocket): void;
}

export class Inspections implements InspectionOwner {
  readonly filters: readonly ListenerFilter[];
  readonly maxBytes: number;
  readonly #settings: InspectionSettings;
  readonly #transport: Transport;
  readonly #stats: Scope;
  readonly #events: InspectionEvents;
  readonly #sockets = new ConnectionList<InspectedSocket>();

  /** `stats`: listener.<address>. */
  constructor(settings: InspectionSettings, transport: Transport, stats: Scope, events: InspectionEvents) {
    this.filters = settings.filters;
    this.maxBytes = settings.filters.reduce((sum, { maxBytes }) => sum + maxBytes, 0);
    this.#settings = settings;
    this.#transport = transport;
    this.#stats = stats;
    this.#events = events;
  }

  /**
   * Begins the inspection of an accepted socket. `former`: what another listener, which passes the socket on, has found. `origin`: of a
   * connection to an internal listener. Returns the next handler of the socket; undefined: it is closed.
   */
  begin(id: number, peer: Address, former?: InspectedSocket, origin = former?.origin): ConnectionHandler | undefined {
    const socket = new InspectedSocket(this, this.#transport, id, peer, origin);
    if (former !== undefined) socket.inherit(former);
    this.#sockets.add(socket);
    this.#stats.increment(ListenerStats.at.downstream_pre_cx_active);
    let begun: ReturnType<InspectedSocket['begin']>;
    try {
      begun = socket.begin();
    } catch (error) {
      this.#drop(socket);
      throw error;
    }
    if (begun === true) {
      this.#leave(socket);
      return this.#events.onInspected(socket);
    }
    if (begun !== false) {
      this.failed(socket, begun);
      return undefined;
    }
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
    const handler = this.#events.onInspected(socket);
    if (handler !== undefined) this.#transport.setHandler(socket.id, handler);
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

  /** Drops all sockets when the listener is removed. */
  close(): void {
    for (const socket of [...this.#sockets]) this.#drop(socket);
  }

  #drop(socket: InspectedSocket): void {
    this.#leave(socket);
    this.#events.onDropped(socket);
    this.#transport.close(socket.id, 0, 0);
  }

  #leave(socket: InspectedSocket): void {
    this.#sockets.remove(socket);
    this.#settings.timers.cancel(socket.timer);
    this.#stats.decrement(ListenerStats.at.downstream_pre_cx_active);
  }
}
