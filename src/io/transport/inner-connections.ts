// Connections whose two ends are in one thread: pairs of Unix sockets, of which the transport serves both. The kernel delivers no reset
// between them, also when bytes are dropped: it is passed on here, so that a stream that was cut off does not look complete.

import { encodeIp } from '../addresses/address.js';
import { ConnectStep, type NativeShim, type NativeTransport, type SocketOption } from '../shim.js';
import type { BufferLimits } from './buffer-limits.js';
import type { GoneHandler, LateHandler } from './close-notifications.js';
import type { ConnectionHandler } from './connection-handler.js';
import { InnerPairs } from './inner-pairs.js';

/** The public methods of the transport that are called here. */
interface OwnTransport {
  connect(remote: Uint8Array, from: typeof NO_OPTIONS, limits: BufferLimits, handler: ConnectionHandler): number;
  pause(id: number): void;
  pendingBytes(id: number): number;
  defer(id: number, action: () => void): void;
  addLateHandler(late: LateHandler): number;
  removeLateHandler(token: number): void;
  report(error: unknown): void;
}

/** Parts of the transport that only it and its connections may use. */
interface TransportParts {
  handlerOf(id: number): ConnectionHandler | undefined;
  setHandler(id: number, handler: ConnectionHandler): void;
  /** Passes all submissions to the shim. */
  flush(): void;
  requestLate(id: number, token: number): void;
  notifyLate(token: number, isSent: boolean): void;
}

/** The error of a connect to an address that no listener has. */
const EINVAL = 22;
const ECONNRESET = 104;

/** Of no late handler. */
const NO_TOKEN = 0;

/** The state of a new connection for NativeTransport.adopt(). */
const FRESH = { pending: new Uint8Array(), ended: false, finAsked: false, paused: false, frozen: false };
const NO_OPTIONS = { sourceAddress: undefined, keepalive: undefined };
/** No socket is ever bound to port 0. */
const NOWHERE = encodeIp('127.0.0.1', 0);

export class InnerConnections {
  readonly #shim: NativeShim;
  readonly #native: NativeTransport;
  readonly #transport: OwnTransport;
  readonly #parts: TransportParts;
  readonly #pairs = new InnerPairs();
  /** The token of the last lateRequested() for an end, which is closed next; 0: none. */
  #lateToken = 0;

  constructor(shim: NativeShim, native: NativeTransport, transport: OwnTransport, parts: TransportParts) {
    this.#shim = shim;
    this.#native = native;
    this.#transport = transport;
    this.#parts = parts;
  }

  /**
   * Opens a connection. In a later turn it passes the descriptor of the other end to `give`, which owns it from then on unless it returns
   * false: the connect has failed then. `bufferBytes`: the most that may be on the way in each direction; undefined: the kernel's default.
   * Returns the ID of the own end, whose `handler` gets the outcome as with Transport.connect().
   */
  connect(
    limits: BufferLimits,
    bufferBytes: number | undefined,
    handler: ConnectionHandler,
    give: (fd: number) => boolean,
  ): number {
    let ends: readonly number[] = [];
    let id: number;
    try {
      ends = this.#shim.streamPair();
      if (bufferBytes !== undefined) for (const fd of ends) this.#shim.setSocketOption(fd, sendBuffer(bufferBytes));
      id = this.#native.adopt(ends[0]!, { ...limits, ...FRESH });
    } catch {
      for (const fd of ends) this.#shim.closeDescriptor(fd);
      // Descriptors are short: this connect fails too, and reports it.
      return this.#transport.connect(NOWHERE, NO_OPTIONS, limits, handler);
    }
    const other = ends[1]!;
    this.#parts.setHandler(id, handler);
    this.#pairs.open(id, other);
    this.#transport.defer(id, () => this.#give(id, other, handler, give));
    return id;
  }

  #give(id: number, fd: number, handler: ConnectionHandler, give: (fd: number) => boolean): void {
    const isOpen = () => this.#parts.handlerOf(id) === handler;
    // An exception of `give` is not one of this connection.
    let isTaken = false;
    try {
      isTaken = isOpen() && give(fd);
    } catch (error) {
      this.#transport.report(error);
      isTaken = true;
    }
    this.#pairs.given(fd);
    if (!isTaken) this.#shim.closeDescriptor(fd);
    if (!isOpen()) return;
    if (isTaken) handler.onConnected();
    else handler.onReset(EINVAL, ConnectStep.Connect);
  }

  /** Takes over a descriptor that connect() has given. Returns the ID of that end. If it throws, the descriptor is closed. */
  adopt(fd: number, limits: BufferLimits): number {
    try {
      const id = this.#native.adopt(fd, { ...limits, ...FRESH });
      this.#pairs.accepted(fd, id);
      return id;
    } catch (error) {
      this.#shim.closeDescriptor(fd);
      throw error;
    }
  }

  /** Closes a descriptor that connect() has given: its own end sees a connection that ends at once. */
  closeGiven(fd: number): void {
    this.#shim.closeDescriptor(fd);
  }

  // ── Called by the transport, unless isEmpty ──────────────────────────────────────────────────────────────────────

  /** There are no such connections. */
  get isEmpty(): boolean {
    return this.#pairs.isEmpty;
  }

  hasOther(id: number): boolean {
    return this.#pairs.other(id) !== undefined;
  }

  /** Returns whether the end will get a reset: until then its stream must not end. */
  isResetting(id: number): boolean {
    return this.#pairs.isResetting(id);
  }

  /** Called for a late notification about the close that follows. */
  lateRequested(id: number, token: number): void {
    if (this.hasOther(id)) this.#lateToken = token;
  }

  /**
   * Called before an end is closed: the other end gets a reset if bytes are dropped, now or when the flush takes too long. Returns what must be
   * called when the close has finished, in place of `gone`.
   */
  closing(id: number, flushMs: number, gone: (() => void) | undefined): GoneHandler | undefined {
    this.#endFlush(id);
    const other = this.#pairs.other(id);
    const callerToken = this.#lateToken;
    this.#lateToken = 0;
    if (other === undefined) {
      this.#pairs.closed(id);
      return gone;
    }
    this.#parts.flush();
    const isUnsent = this.#transport.pendingBytes(id) > 0;
    if (isUnsent && flushMs === 0) {
      this.wasReset(id);
      return gone;
    }
    this.#pairs.closed(id);
    if (!isUnsent) return gone;
    // A close has one notification.
    if (gone === undefined) this.#watchFlush(id, other, callerToken);
    else {
      this.#pairs.flushing(other, NO_TOKEN);
      return (isCut) => {
        if (isCut) this.#wasCut(other);
        gone();
      };
    }
    return undefined;
  }

  #watchFlush(id: number, other: number, callerToken: number): void {
    const token = this.#transport.addLateHandler((isSent) => {
      this.#parts.notifyLate(callerToken, isSent);
      if (!isSent && this.#wasCut(other)) this.#transport.removeLateHandler(token);
    });
    this.#pairs.flushing(other, token);
    this.#parts.requestLate(id, token);
  }

  /** Passes on to an end that the rest for it was dropped. Returns false if that end has been closed. */
  #wasCut(other: number): boolean {
    if (this.#pairs.takeFlush(other) === undefined) return false;
    this.#pairs.resetting(other);
    this.#deliverReset(other);
    return true;
  }

  /** Called when an end is reset, from either side: passes that on to the other end. */
  wasReset(id: number): void {
    this.#endFlush(id);
    const other = this.#pairs.reset(id);
    if (other !== undefined) this.#deliverReset(other);
  }

  /** Closes the descriptors that nothing has taken over. */
  clear(): void {
    for (const fd of this.#pairs.clear()) this.#shim.closeDescriptor(fd);
  }

  /** Called when an end is closed: it no longer receives the rest of the other one. */
  #endFlush(id: number): void {
    const token = this.#pairs.takeFlush(id);
    if (token !== undefined && token !== NO_TOKEN) this.#transport.removeLateHandler(token);
  }

  #deliverReset(other: number): void {
    // For its kernel socket the connection ends in order, which must not come first.
    this.#transport.pause(other);
    this.#transport.defer(other, () => {
      if (!this.#pairs.takeReset(other)) return;
      this.#parts.handlerOf(other)?.onReset(ECONNRESET, ConnectStep.Later);
    });
  }
}

/** SO_SNDBUF of socket(7), which limits the bytes that the peer of a Unix socket has not read. */
function sendBuffer(bytes: number): SocketOption {
  return { level: 1, name: 7, value: new Uint8Array(Int32Array.of(bytes).buffer) };
}
