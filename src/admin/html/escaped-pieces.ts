// Escapes a long plain text in pieces for an element of a page.

import type { Pieces } from '../admin-handler.js';
import { ENTITIES } from './page.js';

/** By byte. In UTF-8 these characters are single bytes and never part of another character. */
const ESCAPES: readonly (Buffer | undefined)[] = Array.from({ length: 256 }, (_, byte) => {
  const entity = ENTITIES[String.fromCharCode(byte)];
  return entity === undefined ? undefined : Buffer.from(entity);
});

/**
 * Yields `head`, the escaped pieces and `tail`. Empty pieces are passed on: they only yield the thread.
 *
 * Not a generator: one that has not begun, or waits for its source, would not forward return().
 */
export class EscapedPieces implements AsyncIterableIterator<Uint8Array> {
  readonly #pieces: Pieces;
  readonly #source: Iterator<Uint8Array> | AsyncIterator<Uint8Array>;
  /** Text before and after the source's pieces; undefined once it was sent. */
  #head: string | undefined;
  #tail: string | undefined;

  constructor(head: string, pieces: Pieces, tail: string) {
    this.#pieces = pieces;
    this.#source = Symbol.asyncIterator in pieces ? pieces[Symbol.asyncIterator]() : pieces[Symbol.iterator]();
    this.#head = head;
    this.#tail = tail;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  whenCut(listener: () => void): void {
    this.#pieces.whenCut?.(listener);
  }

  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    if (this.#head !== undefined) {
      const value = Buffer.from(this.#head);
      this.#head = undefined;
      return { done: false, value };
    }
    if (this.#tail === undefined) return { done: true, value: undefined };
    const { done, value } = await this.#source.next();
    if (done !== true) return { done: false, value: escapeBytes(value) };
    // return() may have been called in the meantime.
    const tail = this.#tail;
    this.#tail = undefined;
    return tail === undefined ? { done: true, value: undefined } : { done: false, value: Buffer.from(tail) };
  }

  async return(): Promise<IteratorResult<Uint8Array, undefined>> {
    this.#head = undefined;
    this.#tail = undefined;
    await this.#source.return?.();
    return { done: true, value: undefined };
  }
}

/** Returns the same bytes if nothing has to be escaped. */
export function escapeBytes(bytes: Uint8Array): Uint8Array {
  let extra = 0;
  for (let i = 0; i < bytes.length; i++) {
    const entity = ESCAPES[bytes[i]!];
    if (entity !== undefined) extra += entity.length - 1;
  }
  if (extra === 0) return bytes;
  const escaped = Buffer.allocUnsafe(bytes.length + extra);
  let at = 0;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]!;
    const entity = ESCAPES[byte];
    if (entity === undefined) escaped[at++] = byte;
    else at += entity.copy(escaped, at);
  }
  return escaped;
}
