// The link between a parent and its child: messages in order with descriptors, and the end of the peer.

import { constants } from 'node:os';
import { errorName } from '../common/errors/errno.js';
import { messageOf } from '../common/errors/errors.js';
import type { MessageSocketEvents, NativeMessageSocket, NativeShim } from '../io/shim.js';
import { internalError } from '../log/internal-errors.js';

/** What a link does with its messages. */
export interface Codec<In, Out> {
  encode(message: Out): Uint8Array;
  /** Throws when the bytes are no message. */
  decode(bytes: Uint8Array): In;
}

/** What happens on a link. */
export interface LinkEvents<In> {
  /** Descriptors belong to the receiver. */
  message(message: In, fds: readonly number[]): void;
  /**
   * It is over: the peer has ended (`isGone`), or what it did makes it unusable, and it may still run. Called once, and not after
   * close().
   */
  ended(why: string, isGone: boolean): void;
  /** The peer of an unusable link has ended now. Absent: such a link is closed at once; otherwise it is kept for this alone. */
  gone?(): void;
  /** A message is lost, because this process may open no more descriptors for it. Absent: that ends the link. */
  lost?(): void;
}

/** One end of it. */
export interface Link<Out> {
  /** Copies of the descriptors go along; they stay open until the message is gone. */
  send(message: Out, fds?: readonly number[]): void;
  /** Resolves when everything that was sent is with the peer, or lost. */
  drained(): Promise<void>;
  /** What the peer has said makes it unusable, though each message was one: ended() is called with this reason. */
  giveUp(why: string): void;
  close(): void;
}

/** How long a peer may take no messages. */
const STALL_MS = 10_000;
/** Of messages that wait for it. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;

const TOO_FEW = 'this one may open too few descriptors for what came (EMFILE); raise the limit (ulimit -n)';

export class MessageLink<In, Out> implements Link<Out>, MessageSocketEvents {
  readonly #shim: NativeShim;
  readonly #codec: Codec<In, Out>;
  readonly #events: LinkEvents<In>;
  readonly #socket: NativeMessageSocket;
  readonly #waiting: { readonly bytes: Uint8Array; readonly fds: readonly number[] }[] = [];
  #waitingBytes = 0;
  #stall: NodeJS.Timeout | undefined;
  #onDrained: (() => void)[] = [];
  #isOver = false;
  /** It is unusable, and only the end of the peer is waited for. */
  #isDeaf = false;

  /** Takes `fd` over. Throws an Error with `code` when it is not one end of a conversation in packets. */
  constructor(shim: NativeShim, fd: number, codec: Codec<In, Out>, events: LinkEvents<In>) {
    this.#shim = shim;
    this.#codec = codec;
    this.#events = events;
    this.#socket = shim.watchMessages(fd, this, true);
  }

  send(message: Out, fds: readonly number[] = []): void {
    if (this.#isOver || this.#isDeaf) return;
    const bytes = this.#codec.encode(message);
    this.#waitingBytes += bytes.length;
    if (this.#waitingBytes > MAX_WAITING_BYTES) {
      // Not amid what the sender does.
      setImmediate(() => this.#end('it takes its messages too slowly'));
      return;
    }
    this.#waiting.push({ bytes, fds });
    if (this.#waiting.length === 1) this.onWritable();
  }

  drained(): Promise<void> {
    if (this.#waiting.length === 0) return Promise.resolve();
    return new Promise((resolve) => this.#onDrained.push(resolve));
  }

  giveUp(why: string): void {
    this.#end(why);
  }

  close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#socket.close();
    this.#stopSpeaking();
  }

  onMessage(bytes: Uint8Array, fds: readonly number[]): void {
    if (this.#isDeaf) {
      for (const fd of fds) this.#shim.closeDescriptor(fd);
      return;
    }
    let message: In;
    try {
      message = this.#codec.decode(bytes);
    } catch (error) {
      for (const fd of fds) this.#shim.closeDescriptor(fd);
      this.#end(`it sent what is no message (${messageOf(error)})`);
      return;
    }
    if (this.#isOver) for (const fd of fds) this.#shim.closeDescriptor(fd);
    else this.#deliver(message, fds);
  }

  /** The link outlives what a message does: without it the peer would take this process for dead. */
  #deliver(message: In, fds: readonly number[]): void {
    try {
      this.#events.message(message, fds);
    } catch (error) {
      internalError('internal error: a message of the other process of a hot restart was not handled', error);
    }
  }

  onWritable(): void {
    clearTimeout(this.#stall);
    this.#stall = undefined;
    try {
      for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
        if (!this.#socket.send(first.bytes, first.fds)) {
          this.#stall = setTimeout(() => this.#end(`it took no message for ${STALL_MS / 1000} s`), STALL_MS);
          return;
        }
        this.#waiting.shift();
        this.#waitingBytes -= first.bytes.length;
      }
    } catch (error) {
      // The peer's last words may still be there to be read: its end is told when they have been.
      this.#waiting.length = this.#waitingBytes = 0;
      if (!isGone(error)) this.#end(messageOf(error));
    }
    for (const resolve of this.#onDrained.splice(0)) resolve();
  }

  /** A message that cannot be received makes the link unusable, unless only descriptors lack: the peer relies on all of them. */
  onLost(errno: number): void {
    const isShort = errno === constants.errno.EMFILE;
    if (isShort && this.#events.lost !== undefined) this.#events.lost();
    else this.#end(isShort ? TOO_FEW : errorName(errno));
  }

  onEnd(errno: number): void {
    if (this.#isOver) return;
    this.close();
    if (this.#isDeaf) this.#events.gone?.();
    else this.#events.ended(errno === 0 ? 'it has ended' : errorName(errno), errno === 0);
  }

  /** What the peer does makes it unusable. */
  #end(why: string): void {
    if (this.#isOver || this.#isDeaf) return;
    if (this.#events.gone === undefined) this.close();
    else this.#stopSpeaking();
    this.#isDeaf = true;
    this.#events.ended(why, false);
  }

  #stopSpeaking(): void {
    clearTimeout(this.#stall);
    this.#waiting.length = this.#waitingBytes = 0;
    for (const resolve of this.#onDrained.splice(0)) resolve();
  }
}

function isGone(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'EPIPE' || code === 'ECONNRESET' || code === 'ENOTCONN';
}
