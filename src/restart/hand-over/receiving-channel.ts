// The child's end of a channel on which it receives connections. sending-channel.ts defines which process owns them.

import { messageOf } from '../../common/errors/errors.js';
import type { MessageSocketEvents, NativeMessageSocket, NativeShim } from '../../io/shim.js';
import type { HandedOverConnection, PreparedTakeOver } from '../../listener/hand-over.js';
import { forEachGuarded, internalError } from '../../log/internal-errors.js';
import { decodeConnection, decodeMessage, encodeMessage, HandOverError, HandOverKind } from './hand-over-wire.js';

export interface ReceivingHost {
  /**
   * Builds everything for a connection, with copies of the descriptors, or returns the reason for refusing it. Must not throw.
   */
  prepareTakeOver(handedOver: HandedOverConnection): PreparedTakeOver | string;
  /** Called when the parent has ended or has violated the protocol. */
  ended(why: string): void;
}

/** Per connection; far more than one may have pending. */
const MAX_BYTES = 256 * 1024 * 1024;

export class ReceivingChannel implements MessageSocketEvents {
  readonly #shim: NativeShim;
  readonly #host: ReceivingHost;
  readonly #socket: NativeMessageSocket;
  readonly #prepared = new Map<number, PreparedTakeOver>();
  /** Pieces of the offer that is being received, in order. */
  #pieces: { readonly key: number; readonly parts: Uint8Array[]; bytes: number } | undefined;
  readonly #queue: { readonly bytes: Uint8Array; readonly then: (() => void) | undefined }[] = [];
  #hasEnded = false;

  /** Owns `fd`. Throws an Error with `code`, and leaves it to the caller, when it is not an end of a channel. */
  constructor(shim: NativeShim, fd: number, host: ReceivingHost) {
    this.#shim = shim;
    this.#host = host;
    this.#socket = shim.watchMessages(fd, this, true);
  }

  /** Called when the thread ends: drops what is not committed, which the parent continues. */
  close(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#forEach((prepared) => prepared.drop());
    this.#socket.close();
  }

  onMessage(bytes: Uint8Array, fds: readonly number[]): void {
    const descriptors = [...fds];
    try {
      const { kind, key, body } = decodeMessage(bytes);
      if (kind === HandOverKind.Offer) return this.#receive(key, body, descriptors);
      if (fds.length > 0) throw new HandOverError('unexpected descriptors');
      if (kind === HandOverKind.Piece) return this.#collect(key, body);
      if (kind !== HandOverKind.Commit && kind !== HandOverKind.Abort) {
        throw new HandOverError("a child's message from the parent");
      }
      if (kind === HandOverKind.Commit) return this.#commit(key);
      this.#prepared.get(key)?.drop();
      this.#prepared.delete(key);
      if (this.#pieces?.key === key) this.#pieces = undefined;
    } catch (error) {
      if (!(error instanceof HandOverError))
        internalError('internal error: a connection that is taken over is lost', error);
      this.#closeAll(descriptors);
      this.#fail(messageOf(error));
    }
  }

  onWritable(): void {
    try {
      while (this.#queue.length > 0 && this.#socket.send(this.#queue[0]!.bytes, [])) this.#queue.shift()!.then?.();
    } catch {
      // The parent has ended: its messages are still read, then onEnd() is called.
      this.#queue.length = 0;
    }
  }

  /** With `errno` 0 the parent's end is closed, and the offered connections belong to this process. */
  onEnd(errno: number): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    // Otherwise the parent may live, and continues connections for which it has not received Begun.
    this.#forEach((prepared) => (errno === 0 ? prepared.begin() : prepared.drop()));
    this.#host.ended(errno === 0 ? '' : `errno ${errno}`);
  }

  /** Handles an offer. Removes descriptors from `fds` as it closes them. */
  #receive(key: number, json: Uint8Array, fds: number[]): void {
    const pieces = this.#pieces;
    this.#pieces = undefined;
    const bytes = pieces?.key === key ? Buffer.concat(pieces.parts) : new Uint8Array(0);
    const handedOver = decodeConnection(json, bytes, fds);
    const prepared = this.#host.prepareTakeOver(handedOver);
    this.#closeAll(fds);
    if (typeof prepared === 'string') {
      this.#send(encodeMessage(HandOverKind.Refuse, key, Buffer.from(prepared)));
      return;
    }
    this.#prepared.set(key, prepared);
    this.#send(encodeMessage(HandOverKind.Accept, key));
  }

  #commit(key: number): void {
    if (!this.#prepared.has(key)) throw new HandOverError('a commit without an accept');
    this.#send(encodeMessage(HandOverKind.Begun, key), () => {
      const prepared = this.#prepared.get(key);
      this.#prepared.delete(key);
      prepared?.begin();
    });
  }

  #collect(key: number, part: Uint8Array): void {
    if (this.#pieces?.key !== key) this.#pieces = { key, parts: [], bytes: 0 };
    this.#pieces.bytes += part.length;
    if (this.#pieces.bytes > MAX_BYTES) throw new HandOverError('a connection with too many bytes');
    this.#pieces.parts.push(part);
  }

  /** Sends a message. `then` is called when the kernel has accepted it. */
  #send(bytes: Uint8Array, then?: () => void): void {
    this.#queue.push({ bytes, then });
    if (this.#queue.length === 1) this.onWritable();
  }

  #closeAll(fds: number[]): void {
    for (const fd of fds.splice(0)) this.#shim.closeDescriptor(fd);
  }

  #fail(why: string): void {
    this.close();
    this.#host.ended(why);
  }

  #forEach(what: (prepared: PreparedTakeOver) => void): void {
    const all = [...this.#prepared.values()];
    this.#prepared.clear();
    forEachGuarded(all, 'internal error: a connection that is taken over is lost', what);
  }
}
