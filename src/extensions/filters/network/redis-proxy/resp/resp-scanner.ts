// Finds where a value of the Redis serialization protocol ends, in bytes that arrive piece by piece. Without I/O: RESP2 and RESP3 alike.

/** Bytes that are not of the protocol, or values beyond its limits. */
export class RespError extends Error {}

/** The limits of Redis: bytes of a string, and elements of a command with all that is nested in it. */
const MAX_BULK_BYTES = 512 * 1024 * 1024;
export const MAX_WORDS = 1024 * 1024;
/** Of a reply. Its reader limits the bytes. */
export const MAX_ELEMENTS = 2 ** 48;
const MAX_LINE_BYTES = 64 * 1024;
const MAX_LENGTH_BYTES = 32;

const CR = 13;
const LF = 10;
const MINUS = 45;
const ZERO = 48;
const NINE = 57;

const enum Shape {
  None = 0,
  /** A line: a status, an error, a number. */
  Line = 1,
  /** A length, and as many bytes. */
  Bulk = 2,
  /** A count, and as many values. */
  Array = 3,
  /** A count, and twice as many values. */
  Map = 4,
  /** The same, which describes the value after it. */
  Attribute = 5,
}

const SHAPES = new Uint8Array(256);
for (const type of '+-:#,(_') SHAPES[type.charCodeAt(0)] = Shape.Line;
for (const type of '$=!') SHAPES[type.charCodeAt(0)] = Shape.Bulk;
for (const type of '*~>') SHAPES[type.charCodeAt(0)] = Shape.Array;
SHAPES['%'.charCodeAt(0)] = Shape.Map;
export const ATTRIBUTE = '|'.charCodeAt(0);
SHAPES[ATTRIBUTE] = Shape.Attribute;

export const ARRAY = '*'.charCodeAt(0);
const STRING = '$'.charCodeAt(0);
const INTEGER = ':'.charCodeAt(0);
const NULL = '_'.charCodeAt(0);

/** Returns whether a value of a client can begin with this byte. */
export function isType(byte: number): boolean {
  return SHAPES[byte] !== Shape.None && byte !== ATTRIBUTE;
}

export class RespScanner {
  /** Limit of the values, with all that is nested in them. */
  maxElements: number;
  readonly #readsCommands: boolean;
  /** Of a command, the begin and the end of each argument, from the first byte of the value on. */
  readonly ranges: number[] = [];
  /** The value is an array of strings, and nothing else. */
  isCommand = true;
  /** Values that are still to be read. */
  #left = 1;
  /** Bytes of the value that have been read. */
  #at = 0;
  /** Bytes of the value in which no line ends after #at. */
  #searched = 0;

  constructor(maxElements: number) {
    this.maxElements = maxElements;
    this.#readsCommands = maxElements === MAX_WORDS;
  }

  reset(): void {
    this.ranges.length = 0;
    this.isCommand = true;
    this.#left = 1;
    this.#at = this.#searched = 0;
  }

  /**
   * Continues with the value that begins at bytes[start]. Returns its length; 0 if it has not ended at bytes[end].
   * @throws RespError
   */
  scan(bytes: Uint8Array, start: number, end: number): number {
    let at = start + this.#at;
    while (this.#left > 0) {
      const next = at < end ? this.#step(bytes, start, at, end) : 0;
      if (next === 0) break;
      at = next;
    }
    this.#at = at - start;
    return this.#left === 0 ? this.#at : 0;
  }

  /** Reads one string or number, or the head of an array. Returns where it ends; 0 if that is beyond `end`. */
  #step(bytes: Uint8Array, start: number, at: number, end: number): number {
    const type = bytes[at]!;
    const shape = SHAPES[type]!;
    if (shape === Shape.None || (shape === Shape.Attribute && this.#readsCommands)) {
      throw new RespError(`unknown type ${type}`);
    }
    const max = shape === Shape.Line ? MAX_LINE_BYTES : MAX_LENGTH_BYTES;
    const line = lineEnd(bytes, at + 1, end, Math.max(at + 1, start + this.#searched), max);
    if (line < 0) {
      this.#searched = end - 1 - start;
      return 0;
    }
    if (shape === Shape.Line) {
      if (type === INTEGER) readInteger(bytes, at + 1, line);
      else if (type === NULL && line !== at + 1) throw new RespError('a null has a value');
      this.isCommand = false;
      this.#left--;
      return line + 2;
    }
    const count = readInteger(bytes, at + 1, line);
    if (count < -1) throw new RespError(`a length of ${count}`);
    if (shape === Shape.Bulk) {
      if (start === at || type !== STRING) this.isCommand = false;
      return this.#bulk(bytes, start, line + 2, end, count);
    }
    if (start !== at || type !== ARRAY || count <= 0) this.isCommand = false;
    this.#left += (shape === Shape.Array ? 1 : 2) * Math.max(count, 0);
    // The value that an attribute within a reply describes follows it. One before a reply is a value of its own.
    if (shape !== Shape.Attribute || start === at) this.#left--;
    if (this.#left > this.maxElements) throw new RespError(`more than ${this.maxElements} elements`);
    return line + 2;
  }

  #bulk(bytes: Uint8Array, start: number, body: number, end: number, length: number): number {
    if (length > MAX_BULK_BYTES) throw new RespError(`a string of ${length} bytes`);
    if (length < 0) this.isCommand = false;
    const after = body + length;
    if (length >= 0) {
      if (after + 2 > end) return 0;
      if (bytes[after] !== CR || bytes[after + 1] !== LF) throw new RespError('a string is longer than its length');
      if (this.#readsCommands) this.ranges.push(body - start, after - start);
    }
    this.#left--;
    return length < 0 ? body : after + 2;
  }
}

/**
 * Returns the index of the CR of the next CRLF; -1 if the line has not ended at `end`.
 * @param searched where to begin the search
 * @param max the longest line
 */
export function lineEnd(bytes: Uint8Array, from: number, end: number, searched = from, max = MAX_LINE_BYTES): number {
  const limit = Math.min(end, from + max);
  for (let at = searched; at < limit; at++) {
    if (bytes[at] !== CR) continue;
    if (at + 1 >= end) return -1;
    if (bytes[at + 1] !== LF) throw new RespError('CR without LF');
    return at;
  }
  if (limit < end) throw new RespError(`a line of more than ${max} bytes`);
  return -1;
}

/** Reads decimal digits with an optional minus. Of numbers beyond 2^53 only the sign is right. */
export function readInteger(bytes: Uint8Array, start: number, end: number): number {
  const digits = bytes[start] === MINUS ? start + 1 : start;
  if (digits === end || end - digits > 20) throw new RespError('not a number');
  let number = 0;
  for (let at = digits; at < end; at++) {
    const byte = bytes[at]!;
    if (byte < ZERO || byte > NINE) throw new RespError('not a number');
    number = number * 10 + byte - ZERO;
  }
  return digits === start ? number : -number;
}
