// Reads the commands of a client: arrays of strings, or lines of words as people type them.

import { HeldBytes, HeldBytesError, type Reservations } from './held-bytes.js';
import { splitLine } from './inline-command.js';
import { isType, lineEnd, MAX_WORDS, RespError, RespScanner } from './resp-scanner.js';

/** A command: its name and its arguments. Empty: a value that is not a command. */
export type Command = readonly Buffer[];

export const NO_COMMAND: Command = [];

/** Of a command with more words, the room is reserved as they arrive, and checked before it is split. */
const FREE_WORDS = 1024;
const WORD_BYTES = 128;
/** Where a word begins and ends, in an array that grows by half. */
const RANGE_BYTES = 24;

/** As in Redis, what a client may send before it has authenticated: enough for AUTH and HELLO. */
const STRANGER_WORDS = 10;
const STRANGER_BYTES = 32 * 1024;

export class RequestReader {
  readonly #held: HeldBytes;
  readonly #scanner = new RespScanner(MAX_WORDS);
  /** Bytes of a typed command in which its line does not end. */
  #searched = 0;

  readonly #reservations: Reservations;
  /** Bytes reserved for the ranges of an incomplete command. */
  #reserved = 0;

  constructor(reservations: Reservations) {
    this.#held = new HeldBytes(reservations);
    this.#reservations = reservations;
  }

  /** Adds received bytes. */
  add(bytes: Uint8Array, offset: number, length: number): void {
    this.#held.add(bytes, offset, length);
  }

  /**
   * Returns the next command; undefined if it has not arrived as a whole. `isKnown`: the client has authenticated, or need not.
   * @throws RespError or HeldBytesError
   */
  next(isKnown = true): Command | undefined {
    const { bytes, end, start } = this.#held;
    if (start === end) return undefined;
    const before = this.#held.start;
    const command = isType(bytes[start]!) ? this.#array(isKnown) : this.#inline();
    const length = (command === undefined ? end : this.#held.start) - before;
    if (!isKnown && length > STRANGER_BYTES) throw new RespError('too many bytes before AUTH');
    return command;
  }

  #array(isKnown: boolean): Command | undefined {
    const { bytes, end, start } = this.#held;
    this.#scanner.maxElements = isKnown ? MAX_WORDS : STRANGER_WORDS;
    const length = this.#scanner.scan(bytes, start, end);
    const { isCommand, ranges } = this.#scanner;
    if (length === 0) {
      this.#reserveRanges(ranges.length / 2);
      return undefined;
    }
    this.#checkRoom(ranges.length / 2);
    const command = isCommand ? argumentsOf(bytes, start, length, ranges) : NO_COMMAND;
    this.#held.start += length;
    this.#reset();
    return command;
  }

  /** Called when the added bytes are about to become invalid. */
  keep(): void {
    this.#held.keep();
  }

  clear(): void {
    this.#held.clear();
    this.#reset();
  }

  #reset(): void {
    this.#scanner.reset();
    if (this.#reserved === 0) return;
    this.#reservations.release(this.#reserved);
    this.#reserved = 0;
  }

  /** Reserves the room of the ranges of a command that is still arriving. */
  #reserveRanges(words: number): void {
    const more = words * RANGE_BYTES - this.#reserved;
    if (words <= FREE_WORDS || more <= 0) return;
    if (!this.#reservations.reserve(more)) throw new HeldBytesError(`no room for ${words} words`);
    this.#reserved += more;
  }

  /** Throws if there is no room for the words of a command, which the handler of the command reserves. */
  #checkRoom(words: number): void {
    if (words <= FREE_WORDS) return;
    const bytes = words * WORD_BYTES;
    if (!this.#reservations.reserve(bytes)) throw new HeldBytesError(`no room for ${words} words`);
    this.#reservations.release(bytes);
  }

  #inline(): Command | undefined {
    const { bytes, end, start } = this.#held;
    const line = lineEnd(bytes, start, end, start + this.#searched);
    if (line < 0) {
      this.#searched = end - 1 - start;
      return undefined;
    }
    this.#searched = 0;
    const command = splitLine(Buffer.from(bytes.subarray(start, line)));
    this.#held.start = line + 2;
    return command;
  }
}

function argumentsOf(bytes: Uint8Array, start: number, length: number, ranges: readonly number[]): Command {
  const copy = Buffer.from(bytes.subarray(start, start + length));
  const command = new Array<Buffer>(ranges.length / 2);
  for (let index = 0; index < command.length; index++) {
    command[index] = copy.subarray(ranges[index * 2], ranges[index * 2 + 1]);
  }
  return command;
}
