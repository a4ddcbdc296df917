// Reads a body in pieces: each is sent on when the next one is requested.

import { StringDecoder } from 'node:string_decoder';
import type { BodyPiece } from '../../../../api/index.js';
import { bytesOf } from '../../../script/text.js';
import type { StreamControl } from '../../../sdk.js';
import { BodyWait } from './body-wait.js';
import type { Direction } from './direction.js';

/** Unread bytes above which the message is not received. */
const MAX_UNREAD = 64 * 1024;

/** The state of a body when its reading begins. */
export interface Beginning {
  /** What has arrived so far. */
  readonly bytes: Uint8Array;
  readonly isComplete: boolean;
  /** The head is held until the first piece is passed: the stream passes bytes only with a head, or while it holds some. */
  readonly isHeadHeld: boolean;
  /** content-length announces the length. */
  readonly hasFixedLength: boolean;
}

export class PieceReader implements AsyncIterableIterator<BodyPiece> {
  readonly #stream: StreamControl;
  readonly #direction: Direction;
  readonly #begin: () => Beginning;
  readonly #decoder = new StringDecoder('utf8');
  readonly #queue: Uint8Array[] = [];
  #unread = 0;
  #beginning: Beginning | undefined;
  #isHeadHeld = false;
  /** All of the body has arrived. */
  #isComplete = false;
  /** Why the module cannot read any more; undefined: it can. */
  #why: string | undefined;
  /** The piece that the module has. */
  #piece: Piece | undefined;
  #wait: BodyWait | undefined;

  /** `begin`: called at the first step. */
  constructor(stream: StreamControl, direction: Direction, begin: () => Beginning) {
    this.#stream = stream;
    this.#direction = direction;
    this.#begin = begin;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<BodyPiece, undefined>> {
    this.#refuseLate();
    if (this.#beginning === undefined) this.#start();
    this.#passPiece();
    while (this.#queue.length === 0) {
      if (this.#isComplete) return DONE;
      this.#direction.resume(this.#stream);
      this.#wait = new BodyWait();
      await this.#wait.arrived;
      this.#refuseLate();
    }
    const bytes = this.#queue.shift()!;
    this.#unread -= bytes.length;
    const isLast = this.#isComplete && this.#queue.length === 0;
    this.#piece = new Piece(bytes, this.#decoder, isLast, this.#beginning!.hasFixedLength);
    return { value: this.#piece, done: false };
  }

  /** Called by `break` and the like. */
  async return(): Promise<IteratorResult<BodyPiece, undefined>> {
    return DONE;
  }

  /** Called when a part of the body has arrived. */
  push(bytes: Uint8Array, isComplete: boolean): void {
    if (bytes.length > 0) this.#queue.push(bytes);
    this.#unread += bytes.length;
    if (isComplete) this.#isComplete = true;
    else if (this.#unread > MAX_UNREAD) this.#direction.pause(this.#stream);
    this.#wait?.end();
    this.#wait = undefined;
  }

  /** Called when the hook has ended: sends the rest on. `why`: for a module that reads nevertheless. */
  end(why: string): void {
    this.#close(why);
    this.#passPiece();
    for (const bytes of this.#queue.splice(0)) this.#pass(bytes);
    this.#direction.continue(this.#stream);
    this.#direction.resume(this.#stream);
  }

  /** Called when the message ends in another way. */
  abandon(why: string): void {
    this.#close(why);
    this.#queue.length = 0;
  }

  #refuseLate(): void {
    if (this.#why !== undefined) throw new Error(this.#why);
  }

  #close(why: string): void {
    this.#why = why;
    this.#wait?.fail(why);
    this.#wait = undefined;
  }

  #start(): void {
    this.#beginning = this.#begin();
    this.#isHeadHeld = this.#beginning.isHeadHeld;
    this.push(this.#beginning.bytes, this.#beginning.isComplete);
  }

  #passPiece(): void {
    if (this.#piece !== undefined) this.#pass(this.#piece.take());
    this.#piece = undefined;
  }

  #pass(bytes: Uint8Array): void {
    if (!this.#isHeadHeld) return this.#direction.write(this.#stream, bytes);
    if (bytes.length > 0) this.#direction.add(this.#stream, bytes);
    // With the head goes the end, if it has arrived: it must wait for the other pieces.
    if (this.#isComplete) return;
    this.#isHeadHeld = false;
    this.#direction.continue(this.#stream);
  }
}

const DONE: IteratorResult<BodyPiece, undefined> = { value: undefined, done: true };

class Piece implements BodyPiece {
  readonly bytes: Uint8Array;
  readonly #decoder: StringDecoder;
  readonly #isLast: boolean;
  readonly #hasFixedLength: boolean;
  #text: string | undefined;
  #replacement: Uint8Array | undefined;
  #isTaken = false;

  constructor(bytes: Uint8Array, decoder: StringDecoder, isLast: boolean, hasFixedLength: boolean) {
    this.bytes = bytes;
    this.#decoder = decoder;
    this.#isLast = isLast;
    this.#hasFixedLength = hasFixedLength;
  }

  text(): string {
    const bytes = Buffer.from(this.bytes.buffer, this.bytes.byteOffset, this.bytes.length);
    this.#text ??= this.#isLast ? this.#decoder.end(bytes) : this.#decoder.write(bytes);
    return this.#text;
  }

  replace(piece: string | Uint8Array): void {
    if (this.#isTaken) throw new Error('this piece was sent on');
    const bytes = bytesOf(piece);
    if (this.#hasFixedLength && bytes.length !== this.bytes.length)
      throw new Error(
        "content-length announces another length: headers.delete('content-length') before the first piece",
      );
    this.#replacement = bytes;
  }

  take(): Uint8Array {
    this.#isTaken = true;
    return this.#replacement ?? this.bytes;
  }
}
