// The thread's transport: hands events of the native shim to connections, and queues what they send until the turn ends.
//
// One batch is one turn: every handler runs to completion, all submissions are flushed, then received bytes and scratch
// are void. Work outside a batch (timers, messages) is a turn too: its submissions are flushed in a microtask.

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
} from '../shim.js';
import type { Clock } from '../time/clock.js';
import type { BufferLimits } from './buffer-limits.js';
import { CloseNews, type LateHandler } from './close-news.js';
import type { ConnectionHandler, ListenerHandler, Stall } from './connection-handler.js';
import { type LaterAct, LaterTurns } from './later-turns.js';
import { TransportListeners } from './transport-listeners.js';

export interface ConnectingOptions {
  /** Raw sockaddr to connect from. */
  readonly sourceAddress: Uint8Array | undefined;
  /** Undefined: none. */
  readonly keepalive: Keepalive | undefined;
}

const MAX_EVENTS = 1024;
const MAX_SUBMISSIONS = 8192;

const FAULT = 'a connection was ended after an internal error';

export class Transport {
  readonly memory: Memory;
  readonly clock: Clock;

  readonly #shim: NativeShim;
  readonly #native: NativeTransport;
  readonly #events = new Int32Array(MAX_EVENTS * EVENT_STRIDE);
  readonly #submissions = new Int32Array(MAX_SUBMISSIONS * SUBMISSION_STRIDE);
  readonly #control = new Int32Array(Control.AcceptedBy + MAX_EVENTS);
  readonly #connections: (ConnectionHandler | undefined)[] = [];
  readonly #listeners = new TransportListeners();
  readonly #closeNews = new CloseNews();
  readonly #reportFault: (error: unknown, what: string) => void;
  /** Called when a batch begins, after the clock has been read. */
  onTurn: () => void = () => {};
  /** Told of a connection that was reset because even its handler's onFault() threw: who has counted it does so no longer. */
  onLost: (id: number) => void = () => {};
  /** Called when all events of a batch are handled. */
  onTurnEnd: (() => void) | undefined;
  /** Batches in a row that an exception outside handlers has cut short. */
  failedTurns = 0;
  /** Called at the end of each turn in which memory is short, or somebody waits for some. */
  onPressure: () => void = () => {};
  readonly #laterTurns = new LaterTurns(
    () => this.beginTurn(),
    (act) => this.#actLater(act),
  );
  #queued = 0;
  #inBatch = false;
  #flushScheduled = false;

  /**
   * `reserve`: descriptors that are left to others (see TransportOptions). `reportFault` is told of every exception that a handler
   * threw, before the connection is ended, and of what else was caught (`what` is what the log says of it).
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
    });
  }

  /** Copies `fd`, for accept(); `shared`: other threads accept on the same socket. Returns the listener's id. */
  addListener(fd: number, shared: boolean, handler: ListenerHandler): number {
    // Between batches nothing of those that have left is under way.
    if (this.#listeners.hasLeaving && !this.#inBatch) this.#listeners.forgetLeft(this.#native.counts().listeners);
    const id = this.#native.addListener(fd, shared);
    this.#native.setAccepting(id, false);
    this.#listeners.add(id, handler);
    return id;
  }

  /** Takes connections at a listener, which listens. */
  accept(id: number): void {
    this.#native.setAccepting(id, true);
  }

  /** Takes none any more, until accept(). */
  suspend(id: number): void {
    this.#native.setAccepting(id, false);
  }

  /** Stops accepting and closes this thread's copy; with `acceptRest` what the kernel has queued is still delivered. */
  removeListener(id: number, acceptRest: boolean): void {
    this.#native.removeListener(id, acceptRest);
    this.#listeners.remove(id, acceptRest);
  }

  /** Connects to a raw sockaddr, as `from` says. Returns the id; success and failure come as events. */
  connect(remote: Uint8Array, from: ConnectingOptions, limits: BufferLimits, handler: ConnectionHandler): number {
    const { hardLimit, highWatermark, receiveLimit } = limits;
    const id = this.#native.connect(remote, from.sourceAddress, highWatermark, hardLimit, receiveLimit);
    if (from.keepalive !== undefined) this.#native.keepAlive(id, from.keepalive);
    this.#connections[id & ID_SLOT_MASK] = handler;
    return id;
  }

  /** Takes over a connected socket. */
  adopt(fd: number, handler: ConnectionHandler): number {
    const id = this.#native.adopt(fd);
    this.#connections[id & ID_SLOT_MASK] = handler;
    return id;
  }

  /**
   * Goes on with a copy of a connected socket, as another transport has left it, when it is thawed: then it needs its handler.
   * Throws an Error with `code`.
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
   * Stops a connection where it is, for another transport to go on with it: it has no events, and nothing is sent or ended.
   * False when it is not connected or broken. Called between batches, or in onTurnEnd().
   */
  freeze(id: number): boolean {
    // What was submitted before belongs to what the other one goes on with.
    this.#flush();
    return this.#native.freeze(id);
  }

  /** A frozen connection as another transport needs it. Throws an Error with `code` when no descriptor is left. */
  copyFrozen(id: number): FrozenConnection {
    return this.#native.copyFrozen(id);
  }

  /** A frozen connection goes on here. */
  thaw(id: number): void {
    this.#native.thaw(id);
  }

  /** A frozen connection is another one's: its peer does not notice. The id is dead. */
  letGo(id: number): void {
    this.#connections[id & ID_SLOT_MASK] = undefined;
    this.#native.letGo(id);
  }

  /** TCP keepalive of a connected socket that somebody else reads. Throws an Error with `code`. */
  keepAlive(fd: number, settings: Keepalive): void {
    // Options are the socket's, whichever descriptor names it; a frozen one is not read.
    const limits = { highWatermark: 0, hardLimit: 0, receiveLimit: 0 };
    const id = this.adoptFrozen({ fd, pending: new Uint8Array(), ended: false, finAsked: false }, limits, true);
    try {
      this.#native.keepAlive(id, settings);
    } finally {
      this.#native.letGo(id);
    }
  }

  localAddress(id: number): Uint8Array {
    return this.#native.localAddress(id);
  }

  /** Another handler takes the connection over. */
  setHandler(id: number, handler: ConnectionHandler): void {
    this.#connections[id & ID_SLOT_MASK] = handler;
  }

  send(id: number, offset: number, length: number): void {
    this.#submit(Op.Send, id, offset, length);
  }

  /**
   * Closes in order: behind pending bytes, as long as the peer takes some of them every `flushMs`; with `lingerMs` > 0 the peer then
   * gets that long to end its side, so that unread bytes of his do not destroy what was sent last. The id is dead at once; `gone` is
   * called when all that is over.
   */
  close(id: number, flushMs: number, lingerMs: number, gone?: () => void): void {
    this.#connections[id & ID_SLOT_MASK] = undefined;
    if (gone !== undefined) this.#submit(Op.TellGone, id, this.#closeNews.awaitGone(gone), 0);
    this.#submit(Op.Close, id, flushMs, lingerMs);
  }

  /** `late` is called for each connection whose close is cut short, of those that tellLate() names with the token that this returns. */
  listenToLate(late: LateHandler): number {
    return this.#closeNews.listenToLate(late);
  }

  forgetLate(token: number): void {
    this.#closeNews.forgetLate(token);
  }

  /** The close that follows tells if it is cut short. */
  tellLate(id: number, token: number): void {
    this.#submit(Op.TellLate, id, token, 0);
  }

  /** Aborts with RST. The id is dead at once. */
  reset(id: number): void {
    this.#connections[id & ID_SLOT_MASK] = undefined;
    this.#submit(Op.Reset, id, 0, 0);
  }

  /** Ends the sending direction behind what is pending. */
  shutdown(id: number): void {
    this.#submit(Op.Shutdown, id, 0, 0);
  }

  /** Of a new connection: onData() only shows what has come so far, at most `most` bytes, each time that more has come. */
  peek(id: number, most: number): void {
    this.#submit(Op.Peek, id, most, 0);
  }

  /** Takes away so many of the bytes that were shown; the rest is received as on any other connection. */
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

  /** Bytes of a connection that the kernel has not taken yet. */
  pendingBytes(id: number): number {
    return this.#native.pendingBytes(id);
  }

  /** Lets connections from slot `from` on add what they hold back. Returns the slot to go on from, 0 after the last. */
  addBuffered(sums: BufferedBytes, from: number, slots: number): number {
    const connections = this.#connections;
    const end = Math.min(from + slots, connections.length);
    for (let slot = from; slot < end; slot++) connections[slot]?.addBuffered?.(sums);
    return end === connections.length ? 0 : end;
  }

  /** Connections that hold memory and wait for their peers. */
  stalls(): Stall[] {
    const found: Stall[] = [];
    for (const connection of this.#connections) {
      const stall = connection?.stalled?.();
      if (stall !== undefined) found.push(stall);
    }
    return found;
  }

  /** Ends a connection of stalls(). Called outside of a batch. */
  endStall(stall: Stall): void {
    this.#actLater({ id: stall.id, act: () => stall.end() });
  }

  /** Tells the time where neither the transport nor a timer has: nothing else has told it since the last turn. */
  beginTurn(): void {
    if (this.#inBatch) return;
    this.clock.refresh();
    this.onTurn();
  }

  /** Ends the turn where no submission has: what was released in it can be used again. Called outside of a batch. */
  settle(): void {
    this.#flush();
    this.memory.pressure.unsent = this.#control[Control.Pending]!;
    this.memory.endTurn();
  }

  /** Calls `act` for the connection in another turn, behind what has been received by then. What it throws ends the connection. */
  later(id: number, act: () => void): void {
    this.#laterTurns.add({ id, act });
  }

  /** An exception that was caught before it could end the event in which it happened; `what` as the log is to say it. */
  report(error: unknown, what = FAULT): void {
    this.#reportFault(error, what);
  }

  counts(): { connections: number; listeners: number; closing: number } {
    return this.#native.counts();
  }

  /** Whether connections wait that a listener could not accept, since its handler was told. */
  get isStarved(): boolean {
    return this.#native.isStarved();
  }

  /** Carries out what was submitted, and closes every descriptor of this thread, without events. */
  destroy(): void {
    this.#native.flush();
    this.#native.close();
    this.#laterTurns.clear();
    this.#closeNews.clear();
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
    // Before, because it throws for a mistake in one of them, when all are taken: none may be carried out again.
    this.#queued = 0;
    this.#native.flush();
  }

  #onBatch(from: number, count: number): void {
    this.memory.endTurn();
    this.memory.pressure.unsent = this.#control[Control.Pending]!;
    this.#inBatch = true;
    // The shim has taken what was submitted by who heard of an exception in the batch before.
    this.#queued = this.#control[Control.Submissions]!;
    this.failedTurns++;
    try {
      this.onTurn();
      let cursor = from;
      // A handler that throws ends its own connection; the rest of the batch goes on behind it.
      while (cursor < count) {
        try {
          cursor = this.#dispatch(cursor, count);
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

  #dispatch(from: number, count: number): number {
    const events = this.#events;
    const control = this.#control;
    const connections = this.#connections;
    const { memory } = this;
    for (let index = from; index < count; index++) {
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
        if (kind === Event.Gone) this.#tellGone(events[at + 2]!);
        else if (kind === Event.Late) this.#closeNews.tellLate(events[at + 2]!, events[at + 3]! === 1);
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
          handler.onEnd();
          break;
        case Event.Reset:
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
    return count;
  }

  #actLater({ act, id }: LaterAct): void {
    this.memory.step++;
    try {
      act();
    } catch (error) {
      this.#fault(id, error);
    }
  }

  #tellGone(token: number): void {
    try {
      this.#closeNews.tellGone(token);
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
    // Until the handler is known a failure has nobody to end the connection.
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
      // Nobody is left who could end it.
      this.#reportFault(another, FAULT);
      this.reset(id);
      this.onLost(id);
    }
  }
}
