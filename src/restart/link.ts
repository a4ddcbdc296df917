// The link between a parent and its child: ordered messages with descriptors, and detection of the peer's end.

import { constants } from 'node:os';
import { errorName } from '../common/errors/errno.js';
import { messageOf } from '../common/errors/errors.js';
import type { MessageSocketEvents, NativeMessageSocket, NativeShim } from '../io/shim.js';
import { internalError } from '../log/internal-errors.js';

/** The encoding of a link's messages. */
export interface Codec<In, Out> {
  encode(message: Out): Uint8Array;
  /** Throws when the bytes are not a valid message. */
  decode(bytes: Uint8Array): In;
}

/** The callbacks of a link. */
export interface LinkEvents<In> {
  /** Called with a message. The receiver owns the descriptors. */
  message(message: In, fds: readonly number[]): void;
  /**
   * Called once, unless after close(), when the peer has ended (`isGone`), or when its behaviour makes the link unusable while it
   * may still run.
   */
  ended(why: string, isGone: boolean): void;
  /**
   * Called when the peer of an unusable link has ended. Absent: an unusable link is closed at once; otherwise it is kept only to
   * detect this.
   */
  gone?(): void;
  /** Called when a message is lost because this process may open no more descriptors. Absent: that makes the link unusable. */
  lost?(): void;
}

/** One end of a link. */
export interface Link<Out> {
  /** Sends a message with copies of the descriptors, which must stay open until it is sent. */
  send(message: Out, fds?: readonly number[]): void;
  /** Resolves when everything sent has been delivered or lost. */
  drained(): Promise<void>;
  /** Makes the link unusable because of a message that is valid but not permitted: ended() is called with this reason. */
  fail(why: string): void;
  close(): void;
}

/** How long a peer may accept no message. */
const STALL_MS = 10_000;
/** Limit of queued messages. */
const MAX_QUEUE_BYTES = 16 * 1024 * 1024;

const TOO_FEW = 'this one may open too few descriptors for what came (EMFILE); raise the limit (ulimit -n)';

export class MessageLink<In, Out> implements Link<Out>, MessageSocketEvents {
  readonly #shim: NativeShim;
  readonly #codec: Codec<In, Out>;
  readonly #events: LinkEvents<In>;
  readonly #socket: NativeMessageSocket;
  readonly #queue: { readonly bytes: Uint8Array; readonly fds: readonly number[] }[] = [];
  #queueBytes = 0;
  #stall: NodeJS.Timeout | undefined;
  #onDrained: (() => void)[] = [];
  #hasEnded = false;
  /** It is unusable, and only waits for the end of the peer. */
  #isUnusable = false;

  /** Owns `fd`. Throws an Error with `code` when it is not a packet socket. */
  constructor(shim: NativeShim, fd: number, codec: Codec<In, Out>, events: LinkEvents<In>) {
    this.#shim = shim;
    this.#codec = codec;
    this.#events = events;
    this.#socket = shim.watchMessages(fd, this, true);
  }

  send(message: Out, fds: readonly number[] = []): void {
    if (this.#hasEnded || this.#isUnusable) return;
    const bytes = this.#codec.encode(message);
    this.#queueBytes += bytes.length;
    if (this.#queueBytes > MAX_QUEUE_BYTES) {
      // Not within the sender's call.
      setImmediate(() => this.#end('it takes its messages too slowly'));
      return;
    }
    this.#queue.push({ bytes, fds });
    if (this.#queue.length === 1) this.onWritable();
  }

  drained(): Promise<void> {
    if (this.#queue.length === 0) return Promise.resolve();
    return new Promise((resolve) => this.#onDrained.push(resolve));
  }

  fail(why: string): void {
    this.#end(why);
  }

  close(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#socket.close();
    this.#dropQueue();
  }

  onMessage(bytes: Uint8Array, fds: readonly number[]): void {
    if (this.#isUnusable) {
      for (const fd of fds) this.#shim.closeDescriptor(fd);
      return;
    }
    let message: In;
    try {
      message = this.#codec.decode(bytes);
    } catch (error) {
      for (const fd of fds) this.#shim.closeDescriptor(fd);
      this.#end(`it sent an invalid message (${messageOf(error)})`);
      return;
    }
    if (this.#hasEnded) for (const fd of fds) this.#shim.closeDescriptor(fd);
    else this.#deliver(message, fds);
  }

  /** Delivers a message. An exception does not end the link, because the peer would consider this process dead. */
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
      for (let first = this.#queue[0]; first !== undefined; first = this.#queue[0]) {
        if (!this.#socket.send(first.bytes, first.fds)) {
          this.#stall = setTimeout(() => this.#end(`it took no message for ${STALL_MS / 1000} s`), STALL_MS);
          return;
        }
        this.#queue.shift();
        this.#queueBytes -= first.bytes.length;
      }
    } catch (error) {
      // The peer's last messages may still be unread: its end is reported after them.
      this.#queue.length = this.#queueBytes = 0;
      if (!isGone(error)) this.#end(messageOf(error));
    }
    for (const resolve of this.#onDrained.splice(0)) resolve();
  }

  /**
   * Called when a message could not be received. That makes the link unusable, because the peer relies on every message, unless
   * only descriptors are exhausted and lost() exists.
   */
  onLost(errno: number): void {
    const isShort = errno === constants.errno.EMFILE;
    if (isShort && this.#events.lost !== undefined) this.#events.lost();
    else this.#end(isShort ? TOO_FEW : errorName(errno));
  }

  onEnd(errno: number): void {
    if (this.#hasEnded) return;
    this.close();
    if (this.#isUnusable) this.#events.gone?.();
    else this.#events.ended(errno === 0 ? 'it has ended' : errorName(errno), errno === 0);
  }

  /** Makes the link unusable. */
  #end(why: string): void {
    if (this.#hasEnded || this.#isUnusable) return;
    if (this.#events.gone === undefined) this.close();
    else this.#dropQueue();
    this.#isUnusable = true;
    this.#events.ended(why, false);
  }

  #dropQueue(): void {
    clearTimeout(this.#stall);
    this.#queue.length = this.#queueBytes = 0;
    for (const resolve of this.#onDrained.splice(0)) resolve();
  }
}

function isGone(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'EPIPE' || code === 'ECONNRESET' || code === 'ENOTCONN';
}
