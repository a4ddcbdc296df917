// The child's end of a channel on which connections arrive. departure-channel.ts defines which process owns them.

import { messageOf } from '../../common/errors/errors.js';
import type { MessageSocketEvents, NativeMessageSocket, NativeShim } from '../../io/shim.js';
import type { Arrival, Cargo } from '../../listener/travel.js';
import { forEachGuarded, internalError } from '../../log/internal-errors.js';
import { decodeCargo, decodeMessage, encodeMessage, TravelError, TravelKind } from './travel-wire.js';

export interface ArrivalHost {
  /**
   * Builds everything for a connection, with copies of the descriptors, or returns the reason for refusing it. Must not throw.
   */
  expect(cargo: Cargo): Arrival | string;
  /** Called when the parent has ended or has violated the protocol. */
  ended(why: string): void;
}

/** Per connection; far more than one may have pending. */
const MAX_BYTES = 256 * 1024 * 1024;

export class ArrivalChannel implements MessageSocketEvents {
  readonly #shim: NativeShim;
  readonly #host: ArrivalHost;
  readonly #socket: NativeMessageSocket;
  readonly #expected = new Map<number, Arrival>();
  /** Pieces of the offer that is being received, in order. */
  #pieces: { readonly key: number; readonly parts: Uint8Array[]; bytes: number } | undefined;
  readonly #queue: { readonly bytes: Uint8Array; readonly then: (() => void) | undefined }[] = [];
  #hasEnded = false;

  /** Owns `fd`. Throws an Error with `code`, and leaves it to the caller, when it is not an end of a channel. */
  constructor(shim: NativeShim, fd: number, host: ArrivalHost) {
    this.#shim = shim;
    this.#host = host;
    this.#socket = shim.watchMessages(fd, this, true);
  }

  /** Called when the thread ends: drops what is not committed, which the parent continues. */
  close(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#forEach((arrival) => arrival.drop());
    this.#socket.close();
  }

  onMessage(bytes: Uint8Array, fds: readonly number[]): void {
    const descriptors = [...fds];
    try {
      const { kind, key, body } = decodeMessage(bytes);
      if (kind === TravelKind.Offer) return this.#receive(key, body, descriptors);
      if (fds.length > 0) throw new TravelError('unexpected descriptors');
      if (kind === TravelKind.Piece) return this.#collect(key, body);
      if (kind !== TravelKind.Commit && kind !== TravelKind.Abort) {
        throw new TravelError("a child's message from the parent");
      }
      if (kind === TravelKind.Commit) return this.#commit(key);
      this.#expected.get(key)?.drop();
      this.#expected.delete(key);
      if (this.#pieces?.key === key) this.#pieces = undefined;
    } catch (error) {
      if (!(error instanceof TravelError)) internalError('internal error: a connection that arrives is lost', error);
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
    this.#forEach((arrival) => (errno === 0 ? arrival.begin() : arrival.drop()));
    this.#host.ended(errno === 0 ? '' : `errno ${errno}`);
  }

  /** Handles an offer. Removes descriptors from `fds` as it closes them. */
  #receive(key: number, json: Uint8Array, fds: number[]): void {
    const pieces = this.#pieces;
    this.#pieces = undefined;
    const bytes = pieces?.key === key ? Buffer.concat(pieces.parts) : new Uint8Array(0);
    const cargo = decodeCargo(json, bytes, fds);
    const expected = this.#host.expect(cargo);
    this.#closeAll(fds);
    if (typeof expected === 'string') {
      this.#send(encodeMessage(TravelKind.Refuse, key, Buffer.from(expected)));
      return;
    }
    this.#expected.set(key, expected);
    this.#send(encodeMessage(TravelKind.Accept, key));
  }

  #commit(key: number): void {
    if (!this.#expected.has(key)) throw new TravelError('a commit without an accept');
    this.#send(encodeMessage(TravelKind.Begun, key), () => {
      const arrival = this.#expected.get(key);
      this.#expected.delete(key);
      arrival?.begin();
    });
  }

  #collect(key: number, part: Uint8Array): void {
    if (this.#pieces?.key !== key) this.#pieces = { key, parts: [], bytes: 0 };
    this.#pieces.bytes += part.length;
    if (this.#pieces.bytes > MAX_BYTES) throw new TravelError('a connection with too many bytes');
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

  #forEach(what: (arrival: Arrival) => void): void {
    const arrivals = [...this.#expected.values()];
    this.#expected.clear();
    forEachGuarded(arrivals, 'internal error: a connection that arrives is lost', what);
  }
}
