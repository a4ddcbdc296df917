// The received bytes of a connection. They are handled frame by frame in a loop; those beyond the share of a turn are held, and the socket is
// not read until they are handled.

import { HeldBytes } from '../../io/held-bytes.js';
import type { Memory } from '../../io/memory.js';
import type { ByteSink } from '../codec/streams.js';
import { type FrameHandler, FrameReader } from './frame-reader.js';

/**
 * Steps of one connection in a turn: frames, and parts of bodies. A connection to a host carries the responses of many clients: the more of
 * them are handled together, the fewer system calls send them.
 */
const CLIENT_SHARE = 1024;
const HOST_SHARE = 8192;

/** The connection, as its input uses it. */
export interface ReceivingConnection extends FrameHandler {
  readonly isClosed: boolean;
  /** takeTurn() is to be called in a later turn. */
  requestTurn(): void;
  /** Called when the arena has no room for bytes that must wait. */
  onNoRoom(): void;
  /** Called when the peer has half-closed and everything before that was handled. */
  onPeerEnded(): void;
}

export class FrameInput {
  readonly #connection: ReceivingConnection;
  readonly #memory: Memory;
  readonly #reader: FrameReader;
  #sink!: ByteSink;
  #held: HeldBytes | undefined;
  readonly #sharePerTurn: number;
  #share = 0;
  #isRunning = false;
  #isSinkPaused = false;
  #isEnded = false;

  constructor(connection: ReceivingConnection, memory: Memory, isServer: boolean) {
    this.#connection = connection;
    this.#memory = memory;
    this.#reader = new FrameReader(memory, connection, isServer);
    this.#sharePerTurn = isServer ? CLIENT_SHARE : HOST_SHARE;
  }

  open(sink: ByteSink): void {
    this.#sink = sink;
  }

  get bufferedBytes(): number {
    return this.#reader.bufferedBytes + (this.#held?.bytes ?? 0);
  }

  /** Bytes of the arena. */
  get retainedBytes(): number {
    return this.#reader.retainedBytes + (this.#held?.retainedBytes ?? 0);
  }

  /** Takes memory[offset, offset + length). */
  receive(offset: number, length: number): void {
    if (length === 0) return;
    if (this.#held !== undefined) return this.#hold(offset, length);
    const end = offset + length;
    let at = offset;
    this.#isRunning = true;
    this.#share = this.#sharePerTurn;
    while (at < end && this.#share > 0 && !this.#connection.isClosed) {
      this.#share--;
      at = this.#reader.step(at, end);
    }
    this.#isRunning = false;
    if (at === end || this.#connection.isClosed) return;
    this.#hold(at, end - at);
    this.#connection.requestTurn();
  }

  /** The peer has half-closed. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    if (this.#held === undefined) this.#connection.onPeerEnded();
  }

  /** A frame costs as much as this number of further ones. */
  charge(steps: number): void {
    this.#share -= steps;
  }

  /** Handles held bytes. */
  takeTurn(): void {
    const held = this.#held;
    if (held === undefined || this.#isRunning) return;
    this.#isRunning = true;
    this.#share = this.#sharePerTurn;
    while (!held.isEmpty && this.#share > 0 && !this.#connection.isClosed) {
      this.#share--;
      const { start, end } = held.front;
      const at = this.#reader.step(start, end);
      if (this.#held === held) held.consume(at);
    }
    this.#isRunning = false;
    if (this.#connection.isClosed) return;
    if (!held.isEmpty) return this.#connection.requestTurn();
    this.#held = undefined;
    if (this.#isSinkPaused) {
      this.#isSinkPaused = false;
      this.#sink.resume();
    }
    if (this.#isEnded) this.#connection.onPeerEnded();
  }

  close(): void {
    this.#reader.close();
    this.#held?.clear();
    this.#held = undefined;
  }

  #hold(offset: number, length: number): void {
    this.#held ??= new HeldBytes(this.#memory);
    if (!this.#held.append(offset, length)) return this.#connection.onNoRoom();
    if (this.#isSinkPaused) return;
    this.#isSinkPaused = true;
    this.#sink.pause();
  }
}
