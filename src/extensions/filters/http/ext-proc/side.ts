// One direction of a stream: the request or the response, with the same operations.

import type { StreamControl } from '../../../sdk.js';

export interface Side {
  readonly isRequest: boolean;
  /** Passes on all that the filter holds. */
  continue(): void;
  /** Passes on the head only: pass() is valid from then on. */
  passHead(): void;
  /** Passes bytes on at once, ahead of what is held. */
  pass(bytes: Uint8Array): void;
  heldBytes(): number;
  read(): Buffer;
  /** Replaces the held bytes. As in Envoy, the limit of held bytes does not apply. */
  replace(bytes: Uint8Array | undefined): void;
  /** Makes the held bytes and `length` more valid, whatever their limit is. */
  makeRoom(length: number): void;
  pause(): void;
  resume(): void;
}

export class RequestSide implements Side {
  readonly isRequest = true;
  readonly #stream: StreamControl;
  readonly #bufferLimit: number;

  constructor(stream: StreamControl, bufferLimit: number) {
    this.#stream = stream;
    this.#bufferLimit = bufferLimit;
  }

  continue(): void {
    this.#stream.continueDecoding();
  }
  passHead(): void {
    this.#stream.passRequestHead();
  }
  pass(bytes: Uint8Array): void {
    this.#stream.passRequestBytes(bytes);
  }
  heldBytes(): number {
    return this.#stream.heldRequestBytes();
  }
  read(): Buffer {
    return this.#stream.readRequestBytes();
  }
  replace(bytes: Uint8Array | undefined): void {
    this.#stream.dropRequestBytes();
    if (bytes === undefined || bytes.length === 0) return;
    this.makeRoom(bytes.length);
    this.#stream.addRequestBytes(bytes);
  }
  makeRoom(length: number): void {
    const needed = this.heldBytes() + length;
    if (needed > this.#bufferLimit) this.#stream.setRequestBufferLimit(needed);
  }
  pause(): void {
    this.#stream.pauseRequest();
  }
  resume(): void {
    this.#stream.resumeRequest();
  }
}

export class ResponseSide implements Side {
  readonly isRequest = false;
  readonly #stream: StreamControl;
  readonly #bufferLimit: number;

  constructor(stream: StreamControl, bufferLimit: number) {
    this.#stream = stream;
    this.#bufferLimit = bufferLimit;
  }

  continue(): void {
    this.#stream.continueEncoding();
  }
  passHead(): void {
    this.#stream.passResponseHead();
  }
  pass(bytes: Uint8Array): void {
    this.#stream.passResponseBytes(bytes);
  }
  heldBytes(): number {
    return this.#stream.heldResponseBytes();
  }
  read(): Buffer {
    return this.#stream.readResponseBytes();
  }
  replace(bytes: Uint8Array | undefined): void {
    this.#stream.dropResponseBytes();
    if (bytes === undefined || bytes.length === 0) return;
    this.makeRoom(bytes.length);
    this.#stream.addResponseBytes(bytes);
  }
  makeRoom(length: number): void {
    const needed = this.heldBytes() + length;
    if (needed > this.#bufferLimit) this.#stream.setResponseBufferLimit(needed);
  }
  pause(): void {
    this.#stream.pauseResponse();
  }
  resume(): void {
    this.#stream.resumeResponse();
  }
}
