// Reads the replies of a host. A reply stays the bytes that have arrived: only its end, and what follows from its first bytes, is read.

import { HeldBytes, type Reservations } from './held-bytes.js';
import { ATTRIBUTE, lineEnd, MAX_ELEMENTS, RespScanner, readInteger } from './resp-scanner.js';

export class ReplyReader {
  readonly #held: HeldBytes;
  readonly #scanner = new RespScanner(MAX_ELEMENTS);

  constructor(reservations: Reservations) {
    this.#held = new HeldBytes(reservations);
  }

  add(bytes: Uint8Array, offset: number, length: number): void {
    this.#held.add(bytes, offset, length);
  }

  /**
   * Returns the next reply, which is valid until the next call of a method; undefined if it has not arrived as a whole. Skips attributes
   * before replies, and what hosts send of their own accord.
   * @throws RespError
   */
  next(): Uint8Array | undefined {
    const held = this.#held;
    while (held.start < held.end) {
      const length = this.#scanner.scan(held.bytes, held.start, held.end);
      if (length === 0) return undefined;
      this.#scanner.reset();
      held.start += length;
      const type = held.bytes[held.start - length]!;
      if (type !== ATTRIBUTE && type !== PUSH) return held.bytes.subarray(held.start - length, held.start);
    }
    return undefined;
  }

  keep(): void {
    this.#held.keep();
  }

  clear(): void {
    this.#held.clear();
  }
}

const ERRORS = ['-'.charCodeAt(0), '!'.charCodeAt(0)];
const INTEGER = ':'.charCodeAt(0);
const PUSH = '>'.charCodeAt(0);
const ARRAY = '*'.charCodeAt(0);
const SET = '~'.charCodeAt(0);
const MAP = '%'.charCodeAt(0);
const NULL_BYTES = 5;

export function isErrorReply(reply: Uint8Array): boolean {
  return ERRORS.includes(reply[0]!);
}

/** Returns the number; undefined if the reply is not one. */
export function integerOf(reply: Uint8Array): number | undefined {
  return reply[0] === INTEGER ? readInteger(reply, 1, reply.length - 2) : undefined;
}

/** Returns the count of elements and where they begin; undefined if the reply is not an array, a set or a map. */
export function elementsOf(reply: Uint8Array): { readonly count: number; readonly at: number } | undefined {
  const [type] = reply;
  if (type !== ARRAY && type !== SET && type !== MAP) return undefined;
  const line = lineEnd(reply, 1, reply.length);
  return { count: Math.max(readInteger(reply, 1, line), 0) * (type === MAP ? 2 : 1), at: line + 2 };
}

/** Returns whether the reply is a null of RESP2: `$-1` or `*-1`. */
export function isOldNull(reply: Uint8Array): boolean {
  return reply.length === NULL_BYTES && reply[1] === 0x2d && (reply[0] === ARRAY || reply[0] === 0x24);
}
