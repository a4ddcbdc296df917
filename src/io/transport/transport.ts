// The transport of a thread: dispatches events of the native shim to connections, and queues their submissions until the turn ends.
//
// A batch is a turn: every handler runs to completion, all submissions are flushed, then received bytes and scratch become invalid. Work
// outside a batch (timers, messages) is a turn too: its submissions are flushed in a microtask.

import type { BufferedBytes } from '../buffered-bytes.js';
import type { Memory } from '../memory.js';
import {
  type ConnectStep,
  Control,
  EVENT_STRIDE,
  Event,
  type FrozenConnection,
  ID_SLOT_MASK,
  type Keepalive,
  type NativeShim,
  type NativeTransport,
  Op,
  SUBMISSION_STRIDE,
  TlsStaple,
  type TlsState,
} from '../shim.js';
import type { Clock } from '../time/clock.js';
import { readTlsState } from '../tls/session-state.js';
import type { BufferLimits } from './buffer-limits.js';
import { CloseNotifications, type LateHandler } from './close-notifications.js';
import type { ConnectionHandler, ListenerHandler, Stall } from './connection-handler.js';
import { ConnectionSerials } from './connection-serials.js';
import { type DeferredAction, DeferredActions } from './deferred-actions.js';
import { InnerConnections } from './inner-connections.js';
import { TransportListeners } from './transport-listeners.js';

export interface ConnectingOptions {
  /** Raw sockaddr to connect from. */
  readonly sourceAddress: Uint8Array | undefined;
  /** Undefined: keepalive is off. */
  readonly keepalive: Keepalive | undefined;
}

const MAX_EVENTS = 1024;
const MAX_SUBMISSIONS = 8192;

/** X509_V_ERR_UNSPECIFIED. */
const UNSPECIFIED_ERROR = 1;

const FAULT = 'a connection was ended after an internal error';

/** What a client's end of TLS asks for. See NativeShim.startTls(). */
export interface TlsClientOptions {
  readonly serverName: string;
  readonly alpn: Uint8Array;
  readonly sessionGroup: string;
  readonly replacesAlpn?: boolean | undefined;
}

export class Transport {
  readonly memory: Memory;
  readonly clock: Clock;
  /** The serial numbers of connections to and from this thread. */
  readonly serials = new ConnectionSerials();

  readonly #shim: NativeShim;
  readonly #native: NativeTransport;
  readonly #events = new Int32Array(MAX_EVENTS * EVENT_STRIDE);
  readonly #submissions = new Int32Array(MAX_SUBMISSIONS * SUBMISSION_STRIDE);
  readonly #control = new Int32Array(Control.AcceptedBy + MAX_EVENTS);
  readonly #connections: (ConnectionHandler | undefined)[] = [];
  readonly #listeners = new TransportListeners();
  readonly #closeNotifications = new CloseNotifications();
  readonly #reportFault: (error: unknown, what: string) => void;
  /** Called when a batch begins, after the clock has been read. */
  onTurn: () => void = () => {};
  /** Called with a connection that was reset because its handler's onFault() threw: the connection must no longer be counted. */
  onLost: (id: number) => void = () => {};
  /** Called when all events of a batch have been handled. */
  onTurnEnd: (() => void) | undefined;
  /** Number of successive batches that an exception outside of handlers has aborted. */
  failedTurns = 0;
  /** Called at the end of each turn in which memory is short or connections wait for room. */
  onPressure: () => void = () => {};
  readonly #deferred = new DeferredActions(
    () => this.beginTurn(),
    (act) => this.#runDeferred(act),
  );
  #queued = 0;
  #inBatch = false;
  /** Events of the current batch. */
  #eventCount = 0;
  /** Connections whose end or reset is in the current batch, once they have been looked for. */
  readonly #ends: number[] = [];
  #areEndsKnown = false;
  #flushScheduled = false;
  /** Connections whose other end is in this thread. */
  readonly within: InnerConnections;

  /**
   * `reserve`: descriptors that connections may not use (see TransportOptions). `reportFault` is called with every exception of a handler,
   * before its connection is ended, and with other caught errors; `what` is the log line.
   */
  constructor(
    shim: NativeShim,
    memory: Memory,
    clock: Clock,
    limits: BufferLimits,
    reserve: number,
    reportFault: (error: unknown, what: string) => void,
  ) {
    this.#shim = shim;
    this.memory = memory;
    this.clock = clock;
    this.#reportFault = reportFault;
    this.#native = shim.createTransport({
      memory: memory.bytes,
      receiveBytes: memory.receiveBytes,
      events: this.#events,
      submissions: this.#submissions,
      control: this.#control,
      clock: clock.words,
      onBatch: (from, count) => this.#onBatch(from, count),
      highWatermark: limits.highWatermark,
      hardLimit: limits.hardLimit,
      receiveLimit: limits.receiveLimit,
      reserve,
      onVerdict: (id, ...chain) => this.#judge(id, ...chain),
    });
    this.within = new InnerConnections(shim, this.#native, this, {
      handlerOf: (id) => this.#connections[id & ID_SLOT_MASK],
      setHandler: (id, handler) => this.setHandler(id, handler),
      flush: () => this.#flush(),
      requestLate: (id, token) => this.#submit(Op.NotifyLate, id, token, 0),
      notifyLate: (token, isSent) => this.#closeNotifications.notifyLate(token, isSent),
    });
  }

  /**
   * Adds a listener on a copy of `fd`, which accepts after accept(). `shared`: other threads accept on the same socket. `maxAccepted`: how
   * many connections it accepts before others are served; 0: as many as suit the transport. Returns the listener's ID.
   */
  addListener(fd: number, shared: boolean, handler: ListenerHandler, maxAccepted = 0): number {
    // Between batches no event of a removed listener is pending.
    if (this.#listeners.hasDraining && !this.#inBatch) this.#listeners.removeDrained(this.#native.counts().listeners);
    const id = this.#native.addListener(fd, shared, maxAccepted);
    this.#native.setAccepting(id, false);
    this.#listeners.add(id, handler);
    return id;
  }

  /** Starts or resumes accepting at a listener. */
  accept(id: number): void {
    this.#native.setAccepting(id, true);
  }

  /** Stops accepting until accept(). */
  suspend(id: number): void {
    this.#native.setAccepting(id, false);
  }

  /** Stops accepting and closes this thread's copy. With `acceptRest`, connections in the backlog are still delivered. */
  removeListener(id: number, acceptRest: boolean): void {
    this.#native.removeListener(id, acceptRest);
    this.#listeners.remove(id, acceptRest);
  }

  /**
   * Starts a connect to a raw sockaddr with the options `from`. Returns the connection's ID; success and failure are reported to `handler`.
   */
  connect(remote: Uint8Array, from: ConnectingOptions, limits: BufferLimits, handler: ConnectionHandler): number {
    const { hardLimit, highWatermark, receiveLimit } = limits;
    const id = this.#native.connect(remote, from.sourceAddress, highWatermark, hardLimit, receiveLimit);
    if (from.keepalive !== undefined) this.#native.keepAlive(id, from.keepalive);
    this.#connections[id & ID_SLOT_MASK] = handler;
    return id;
  }

  /** Takes over a connected socket. Returns the connection's ID. */
  adopt(fd: number, handler: ConnectionHandler): number {
    const id = this.#native.adopt(fd);
    this.#connections[id & ID_SLOT_MASK] = handler;
    return id;
  }

  /**
   * Takes over a copy of a connected socket in the state that another transport left it in. It is frozen; its handler must be set before
   * thaw(). Returns the connection's ID. Throws an Error with `code`.
   */
  adoptFrozen(socket: FrozenConnection, limits: BufferLimits, paused: boolean): number {
    const { ended, fd, finAsked, pending } = socket;
    const copy = this.#shim.duplicate(fd);
    try {
      return this.#native.adopt(copy, { ...limits, pending, ended, finAsked, paused, frozen: true });
    } catch (error) {
      this.#shim.closeDescriptor(copy);
      throw error;
    }
  }

  /**
   * Freezes a connection, so that another transport can take it over: it gets no events, and nothing is sent or closed. Returns false if it
   * is not connected or broken, or its other end is in this thread. Called between batches or in onTurnEnd().
   */
  freeze(id: number): boolean {
    // Resets could not be passed on to an end in another process, and its ID here may become that of another connection.
    if (this.within.hasOther(id)) return false;
    // Earlier submissions are part of the state that the other transport takes over.
    this.#flush();
    return this.#native.freeze(id);
  }

  /** Returns the state of a frozen connection for another transport. Throws an Error with `code` if no descriptor is left. */
  copyFrozen(id: number): FrozenConnection {
    return this.#native.copyFrozen(id);
  }

  /** Resumes a frozen connection in this transport. */
  thaw(id: number): void {
    this.#native.thaw(id);
  }

  /** Closes this transport's descriptor of a frozen connection that another transport has taken over. The ID becomes invalid. */
  releaseFrozen(id: number): void {
    this.#connections[id & ID_SLOT_MASK] = undefined;
    this.#native.releaseFrozen(id);
  }

  /** Sets TCP keepalive of a connected socket that other code reads. Throws an Error with `code`. */
  keepAlive(fd: number, settings: Keepalive): void {
    // Options belong to the socket, not to a descriptor; a frozen connection is not read.
    const limits = { highWatermark: 0, hardLimit: 0, receiveLimit: 0 };
    const id = this.adoptFrozen({ fd, pending: new Uint8Array(), ended: false, finAsked: false }, limits, true);
    try {
      this.#native.keepAlive(id, settings);
    } finally {
      this.#native.releaseFrozen(id);
    }
  }

  localAddress(id: number): Uint8Array {
    return this.#native.localAddress(id);
  }

  /** Returns the raw sockaddr that a redirected connection was directed to; empty if the kernel does not know. */
  originalDestination(id: number): Uint8Array {
    return this.#native.originalDestination(id);
  }

  /** Replaces the handler of a connection. */
  setHandler(id: number, handler: ConnectionHandler): void {
    this.#connections[id & ID_SLOT_MASK] = handler;
  }

  /**
   * Encrypts a connection from here on: earlier submissions are sent as they are. Its handler learns how the handshake ends. `context`: a
   * number of NativeShim.createTlsContext(). Returns false if it has been released. Throws an Error with `code`.
   */
  startTls(id: number, context: number, client?: TlsClientOptions): boolean {
    this.#flush();
    const { alpn, replacesAlpn, serverName, sessionGroup } = client ?? {};
    return this.#native.startTls(id, context, serverName, alpn, sessionGroup, replacesAlpn);
  }

  /** Undefined for plain connections. */
  tlsState(id: number): TlsState | undefined {
    return readTlsState(this.#native, id);
  }

  /** Returns why TLS has failed: OpenSSL's reasons joined by '|', or ''. */
  tlsFailure(id: number): string {
    return this.#native.tlsFailure(id) ?? '';
  }

  /** What a server did about an OCSP response, as far as the handshake has come. */
  tlsStaple(id: number): TlsStaple {
    return this.#native.tlsStaple(id) ?? TlsStaple.NotRequested;
  }

  /** See NativeTransport.takeTlsKeys(). */
  takeTlsKeys(id: number): string {
    return this.#native.takeTlsKeys(id) ?? '';
  }

  /** The peer's certificates in DER form, its own first. */
  peerCertificates(id: number): Uint8Array[] {
    return this.#native.peerCertificates(id) ?? [];
  }

  /** The issuer of the peer's certificate in the verified chain. */
  peerIssuer(id: number): Uint8Array | undefined {
    return this.#native.peerIssuer(id);
  }

  ownCertificate(id: number): Uint8Array | undefined {
    return this.#native.ownCertificate(id);
  }

  send(id: number, offset: number, length: number): void {
    this.#submit(Op.Send, id, offset, length);
  }

  /**
   * Closes a connection after its pending bytes, as long as the peer reads some of them every `flushMs`. With `lingerMs` > 0 it then waits
   * that long for the peer's FIN, so that unread input does not cause an RST that discards the last bytes sent. The ID is invalid at once;
   * `gone` is called when the close has finished.
   */
  close(id: number, flushMs: number, lingerMs: number, gone?: () => void): void {
    this.#connections[id & ID_SLOT_MASK] = undefined;
    const ended = this.within.isEmpty ? gone : this.within.closing(id, flushMs, gone);
    if (ended !== undefined) this.#submit(Op.NotifyGone, id, this.#closeNotifications.addGone(ended), 0);
    this.#submit(Op.Close, id, flushMs, lingerMs);
  }

  /** Returns a token for requestLate(). Calls `late` for each connection with this token whose close is cut short. */
  addLateHandler(late: LateHandler): number {
    return this.#closeNotifications.addLateHandler(late);
  }

  removeLateHandler(token: number): void {
    this.#closeNotifications.removeLateHandler(token);
  }

  /** Requests a notification if the close that follows is cut short. */
  requestLate(id: number, token: number): void {
    if (!this.within.isEmpty) this.within.lateRequested(id, token);
    this.#submit(Op.NotifyLate, id, token, 0);
  }

  /** Aborts with RST. The ID is invalid at once. */
  reset(id: number): void {
    this.#connections[id & ID_SLOT_MASK] = undefined;
    if (!this.within.isEmpty) this.within.wasReset(id);
    this.#submit(Op.Reset, id, 0, 0);
  }

  /** Half-closes after pending bytes. */
  shutdown(id: number): void {
    this.#submit(Op.Shutdown, id, 0, 0);
  }

  /** For a new connection: onData() only shows the bytes received so far, at most `maxBytes`, whenever more arrive. */
  peek(id: number, maxBytes: number): void {
    this.#submit(Op.Peek, id, maxBytes, 0);
  }

  /** Consumes `count` of the shown bytes. The rest is received as on any other connection. */
  take(id: number, count: number): void {
    this.#submit(Op.Take, id, count, 0);
  }

  pause(id: number): void {
    this.#submit(Op.Pause, id, 0, 0);
  }

  resume(id: number): void {
    this.#submit(Op.Resume, id, 0, 0);
  }

  setLimits(id: number, limits: BufferLimits): void {
    this.#submit(Op.Watermark, id, limits.highWatermark, limits.hardLimit);
    this.#submit(Op.ReceiveLimit, id, limits.receiveLimit, 0);
  }

  /** Returns whether this connection's end or reset is a later event of the batch, so that bytes sent now would be lost. */
  endsInTurn(id: number): boolean {
    if (!this.#inBatch) return false;
    if (!this.#areEndsKnown) this.#findEnds();
    return this.#ends.length > 0 && this.#ends.includes(id);
  }

  /** Returns the bytes of a connection that the kernel has not accepted yet. */
  pendingBytes(id: number): number {
    return this.#native.pendingBytes(id);
  }

  /** Calls addBuffered() of the connections in up to `slots` slots from `from` on. Returns the next slot, or 0 after the last. */
  addBuffered(sums: BufferedBytes, from: number, slots: number): number {
    const connections = this.#connections;
    const end = Math.min(from + slots, connections.length);
    for (let slot = from; slot < end; slot++) connections[slot]?.addBuffered?.(sums);
    return end === connections.length ? 0 : end;
  }

  /** Returns the connections that hold memory and wait for their peers. */
  stalls(): Stall[] {
    const found: Stall[] = [];
    for (const connection of this.#connections) {
      const stall = connection?.stalled?.();
      if (stall !== undefined) found.push(stall);
    }
    return found;
  }

  /** Ends a connection from stalls(). Called outside of a batch. */
  endStall(stall: Stall): void {
    this.#runDeferred({ id: stall.id, action: () => stall.end() });
  }

  /** Updates the clock for a turn that neither the transport nor a timer has begun. */
  beginTurn(): void {
    if (this.#inBatch) return;
    this.clock.refresh();
    this.onTurn();
  }

  /** Ends a turn outside of a batch, so that memory that was released in it can be reused. */
  settle(): void {
    this.#flush();
    this.memory.pressure.unsent = this.#control[Control.Pending]!;
    this.memory.endTurn();
  }

  /** Defers `action` of a connection to a later turn, after input that has arrived by then. If it throws, the connection is ended. */
  defer(id: number, action: () => void): void {
    this.#deferred.add({ id, action });
  }

  /** Reports a caught exception; `what` is the log line. */
  report(error: unknown, what = FAULT): void {
    this.#reportFault(error, what);
  }

  counts(): { connections: number; listeners: number; closing: number } {
    return this.#native.counts();
  }

  /** Whether a listener has reported AcceptFailed, has accepted none since, and connections are waiting. */
  get isStarved(): boolean {
    return this.#native.isStarved();
  }

  /** Carries out queued submissions and closes all descriptors of this thread, without events. */
  destroy(): void {
    this.#native.flush();
    this.#native.close();
    this.within.clear();
    this.#deferred.clear();
    this.#closeNotifications.clear();
    this.#connections.length = 0;
    this.#listeners.clear();
  }

  #submit(op: Op, id: number, offset: number, length: number): void {
    if (this.#queued === MAX_SUBMISSIONS) this.#flush();
    const submissions = this.#submissions;
    const at = this.#queued * SUBMISSION_STRIDE;
    submissions[at] = op;
    submissions[at + 1] = id;
    submissions[at + 2] = offset;
    submissions[at + 3] = length;
    this.#queued++;
    this.#control[Control.Submissions] = this.#queued;
    if (!this.#inBatch && !this.#flushScheduled) this.#scheduleFlush();
  }

  #scheduleFlush(): void {
    this.#flushScheduled = true;
    queueMicrotask(() => {
      this.#flushScheduled = false;
      if (this.#queued === 0) return;
      try {
        this.#flush();
      } finally {
        this.memory.endTurn();
        if (this.memory.pressure.needsRelief) this.onPressure();
      }
    });
  }

  #flush(): void {
    // Reset first: flush() throws for an invalid submission after carrying out the others, and none may be carried out twice.
    this.#queued = 0;
    this.#native.flush();
  }

  #onBatch(from: number, count: number): void {
    this.memory.endTurn(from > 0);
    this.memory.pressure.unsent = this.#control[Control.Pending]!;
    this.#inBatch = true;
    this.#eventCount = count;
    this.#areEndsKnown = false;
    // The shim has carried out what an uncaught-exception handler submitted after the last batch failed: the count has changed.
    this.#queued = this.#control[Control.Submissions]!;
    this.failedTurns++;
    try {
      this.onTurn();
      let cursor = from;
      // A handler that throws ends its own connection; the rest of the batch continues.
      while (cursor < count) {
        try {
          this.#dispatch(cursor, count);
          break;
        } catch (error) {
          cursor = this.#control[Control.Cursor]!;
          this.#fault(this.#events[cursor * EVENT_STRIDE]!, error);
          cursor++;
        }
      }
      this.#listeners.endAccepting();
      this.onTurnEnd?.();
      if (this.memory.pressure.needsRelief) this.onPressure();
      this.failedTurns = 0;
    } finally {
      this.#inBatch = false;
      this.#queued = 0;
    }
  }

  #findEnds(): void {
    const events = this.#events;
    this.#ends.length = 0;
    for (
      let at = this.#control[Control.Cursor]! * EVENT_STRIDE;
      at < this.#eventCount * EVENT_STRIDE;
      at += EVENT_STRIDE
    ) {
      const kind = events[at + 1]! as Event;
      if (kind === Event.End || kind === Event.Reset) this.#ends.push(events[at]!);
    }
    this.#areEndsKnown = true;
  }

  #dispatch(from: number, count: number): void {
    const events = this.#events;
    const control = this.#control;
    const connections = this.#connections;
    const { memory } = this;
    for (let index = from; index < count; index++) {
      // What the turn has queued is sent first. The shim then delivers the rest of the batch in another turn.
      if (memory.isScratchFull && index > from) return;
      control[Control.Cursor] = index;
      memory.step++;
      const at = index * EVENT_STRIDE;
      const id = events[at]!;
      const kind = events[at + 1]! as Event;
      if (kind === Event.Accept) {
        this.#accept(id, control[Control.AcceptedBy + index]!, events[at + 2]!, events[at + 3]!);
        continue;
      }
      if (kind >= Event.AcceptFailed) {
        if (kind === Event.Secured) connections[id & ID_SLOT_MASK]?.onSecured?.();
        else if (kind === Event.HandshakeFailed) this.#handshakeFailed(id);
        else if (kind === Event.Gone) this.#notifyGone(events[at + 2]!, events[at + 3]! === 1);
        else if (kind === Event.Late) this.#closeNotifications.notifyLate(events[at + 2]!, events[at + 3]! === 1);
        else this.#listeners.get(id)?.onAcceptFailed(events[at + 3]!);
        continue;
      }
      const handler = connections[id & ID_SLOT_MASK];
      if (handler === undefined) continue;
      switch (kind) {
        case Event.Data:
          handler.onData(events[at + 2]!, events[at + 3]!);
          break;
        case Event.End:
          if (!this.within.isResetting(id)) handler.onEnd();
          break;
        case Event.Reset:
          // While the other end is open, this is a failure of this one, of which the kernel does not notify that one.
          if (!this.within.isEmpty) this.within.wasReset(id);
          handler.onReset(events[at + 3]!, events[at + 2]! as ConnectStep);
          break;
        case Event.Connected:
          handler.onConnected();
          break;
        case Event.Blocked:
          handler.onBlocked();
          break;
        case Event.Drained:
          handler.onDrained();
          break;
      }
    }
  }

  #runDeferred({ action, id }: DeferredAction): void {
    this.memory.step++;
    try {
      action();
    } catch (error) {
      this.#fault(id, error);
    }
  }

  #handshakeFailed(id: number): void {
    this.#connections[id & ID_SLOT_MASK]?.onHandshakeFailed?.(this.tlsFailure(id));
  }

  /** Called within a handshake: an exception must not get into OpenSSL. */
  #judge(id: number, error: number, depth: number, errorText: string, der: Uint8Array, rules: string): number {
    try {
      const facts = this.#shim.describeCertificate(der);
      const handler = this.#connections[id & ID_SLOT_MASK];
      return handler?.judgePeer?.({ error, depth, errorText, facts, rules }) ?? error;
    } catch (thrown) {
      this.#reportFault(thrown, FAULT);
      return UNSPECIFIED_ERROR;
    }
  }

  #notifyGone(token: number, isCut: boolean): void {
    try {
      this.#closeNotifications.notifyGone(token, isCut);
    } catch (error) {
      this.#reportFault(error, FAULT);
    }
  }

  #accept(id: number, listener: number, offset: number, length: number): void {
    const handler = this.#listeners.get(listener);
    if (handler === undefined) {
      this.reset(id);
      return;
    }
    this.#listeners.beginAccepting(handler);
    // There is no handler yet that could end the connection after a failure.
    try {
      this.#connections[id & ID_SLOT_MASK] = handler.onAccept(id, offset, length);
    } catch (error) {
      this.#reportFault(error, FAULT);
      this.reset(id);
    }
  }

  #fault(id: number, error: unknown): void {
    this.#reportFault(error, FAULT);
    try {
      this.#connections[id & ID_SLOT_MASK]?.onFault(error);
    } catch (another) {
      // The handler itself failed, so reset the connection here.
      this.#reportFault(another, FAULT);
      this.reset(id);
      this.onLost(id);
    }
  }
}
