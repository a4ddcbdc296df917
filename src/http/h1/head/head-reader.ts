// Reads one head that may arrive in pieces. A head in one piece is read in place; otherwise the pieces are collected in an arena block,
// which the complete HeaderBlock takes over. The block is only as large as the bytes received, so a client that stops holds no more than
// that.

import { MAX_BLOCK_BYTES, type Memory, NO_BLOCK, PIECE_BYTES } from '../../../io/memory.js';
import type { Http1Options } from '../../codec/options.js';
import type { HeaderBlock } from '../../headers/header-block.js';
import { H1Error } from '../errors.js';
import { Char } from './characters.js';
import { HeadKind, HeadParser, INCOMPLETE } from './head-parser.js';
import type { KnownFields } from './known-fields.js';
import { MAX_GROWTH, OldSyntax } from './old-syntax.js';

/** Bytes in the old syntax that are rewritten at a time. */
const SLICE = 1024;

export class HeadReader {
  readonly #memory: Memory;
  readonly #parser: HeadParser;
  #block = NO_BLOCK;
  #used = 0;
  #old: OldSyntax | undefined;
  /** The kept bytes are rewritten ones. */
  #isOld = false;
  /** Bytes received of a head that is rewritten. */
  #oldBytes = 0;

  constructor(memory: Memory, known: KnownFields) {
    this.#memory = memory;
    this.#parser = new HeadParser(memory, known);
  }

  /** Bytes kept of an incomplete head. */
  get kept(): number {
    return this.#used;
  }

  /** Offset of the kept bytes. */
  get keptAt(): number {
    return this.#block;
  }

  /** Bytes of the arena that the kept bytes occupy. */
  get retained(): number {
    return this.#block === NO_BLOCK ? 0 : this.#memory.blockSize(this.#block);
  }

  /** The kept bytes are only the empty line, or half of it, that may precede a request. */
  get keepsEmptyLine(): boolean {
    return this.#used > 0 && this.#used <= 2 && this.#memory.bytes[this.#block] === Char.Cr;
  }

  /**
   * Reads bytes[at, end). Returns the offset after the head, a negated H1Error, or INCOMPLETE: all bytes were kept, and the same reader and
   * `head` must get the next ones. With NoMemory no byte was consumed. `acceptsOld`: the syntax of old hosts is accepted.
   */
  read(kind: HeadKind, head: HeaderBlock, at: number, end: number, limits: Http1Options, acceptsOld = false): number {
    if (this.#isOld) return this.#readOld(kind, head, at, end, limits);
    if (this.#block !== NO_BLOCK) return this.#readOn(kind, head, at, end, limits, acceptsOld);
    const limit = Math.min(limits.maxHeadBytes, MAX_BLOCK_BYTES);
    const stop = end - at > limit ? at + limit : end;
    this.#parser.begin(kind, at);
    const result = this.#parser.parse(head, stop, limits);
    if (acceptsOld && mayBeOld(result)) return this.#beginOld(kind, head, at, end, limits);
    if (result !== INCOMPLETE) return result;
    if (stop - at >= limit) return -H1Error.HeadTooLarge;
    return this.#keep(kind, head, at, end);
  }

  /** Releases the kept bytes. The reader can then read another head. */
  reset(): void {
    if (this.#block !== NO_BLOCK) this.#memory.release(this.#block);
    this.#block = NO_BLOCK;
    this.#used = 0;
    this.#isOld = false;
  }

  #keep(kind: HeadKind, head: HeaderBlock, at: number, end: number): number {
    const block = this.#take(kind, end - at, end - at);
    if (block === NO_BLOCK) return -H1Error.NoMemory;
    this.#memory.copy(block, at, end);
    this.#block = block;
    this.#used = end - at;
    this.#startAgain(kind, head);
    return INCOMPLETE;
  }

  /** Restarts parsing, because the kept bytes have moved. */
  #startAgain(kind: HeadKind, head: HeaderBlock): void {
    head.clear();
    this.#parser.begin(kind, this.#block);
  }

  #readOn(
    kind: HeadKind,
    head: HeaderBlock,
    at: number,
    end: number,
    limits: Http1Options,
    acceptsOld: boolean,
  ): number {
    const before = this.#used;
    const limit = Math.min(limits.maxHeadBytes, MAX_BLOCK_BYTES);
    const total = Math.min(before + end - at, limit);
    if (total > this.#memory.blockSize(this.#block) && !this.#grow(kind, head, total)) return -H1Error.NoMemory;
    this.#memory.bytes.copyWithin(this.#block + before, at, at + total - before);
    this.#used = total;
    const result = this.#parser.parse(head, this.#block + total, limits);
    if (acceptsOld && mayBeOld(result)) {
      this.#used = before;
      return this.#beginOld(kind, head, at, end, limits);
    }
    if (result < 0) return result;
    if (result === INCOMPLETE) return total >= limit ? -H1Error.HeadTooLarge : INCOMPLETE;
    const behind = at + (result - this.#block - before);
    if (!this.#handOver(head, result)) {
      this.#used = before;
      return -H1Error.NoMemory;
    }
    return behind;
  }

  /** Parses again what has been kept, and bytes[at, end), in the old syntax. */
  #beginOld(kind: HeadKind, head: HeaderBlock, at: number, end: number, limits: Http1Options): number {
    const kept = this.#block;
    const keptEnd = kept + this.#used;
    this.#block = NO_BLOCK;
    this.#used = this.#oldBytes = 0;
    this.#isOld = true;
    this.#old ??= new OldSyntax();
    this.#old.begin(kind === HeadKind.Trailers);
    const result = kept === NO_BLOCK ? INCOMPLETE : this.#readOld(kind, head, kept, keptEnd, limits);
    if (kept !== NO_BLOCK) this.#memory.release(kept);
    return result === INCOMPLETE ? this.#readOld(kind, head, at, end, limits) : result;
  }

  #readOld(kind: HeadKind, head: HeaderBlock, at: number, end: number, limits: Http1Options): number {
    const old = this.#old!;
    const limit = Math.min(limits.maxHeadBytes, MAX_BLOCK_BYTES);
    while (at < end) {
      const stop = Math.min(end, at + SLICE);
      if (!this.#makeRoom(kind, head, this.#used + old.heldBack + MAX_GROWTH * (stop - at))) {
        this.reset();
        return -H1Error.NoMemory;
      }
      this.#used = old.write(this.#memory.bytes, at, stop, this.#block + this.#used) - this.#block;
      this.#oldBytes += old.readTo - at;
      at = old.readTo;
      let result = this.#parser.parse(head, this.#block + this.#used, limits);
      const isTooLarge = this.#oldBytes > limit || (this.#oldBytes === limit && result === INCOMPLETE);
      if (result >= 0 && isTooLarge) result = -H1Error.HeadTooLarge;
      if (result > 0 && this.#handOver(head, result)) return at;
      if (result !== INCOMPLETE) {
        this.reset();
        return result > 0 ? -H1Error.NoMemory : result;
      }
    }
    return INCOMPLETE;
  }

  #makeRoom(kind: HeadKind, head: HeaderBlock, length: number): boolean {
    if (this.#block !== NO_BLOCK)
      return length <= this.#memory.blockSize(this.#block) || this.#grow(kind, head, length);
    this.#block = this.#take(kind, length, length);
    if (this.#block === NO_BLOCK) return false;
    this.#startAgain(kind, head);
    return true;
  }

  /** Takes an arena block. Under memory pressure request heads must wait; response heads and trailers may not. */
  #take(kind: HeadKind, length: number, wanted: number): number {
    const mustWait = kind === HeadKind.Request && this.#memory.pressure.isCrowded;
    return mustWait ? NO_BLOCK : this.#memory.retain(length, wanted);
  }

  /** Moves the kept bytes to a block of at least `length` bytes. */
  #grow(kind: HeadKind, head: HeaderBlock, length: number): boolean {
    // Each move restarts parsing from the beginning, so long heads must move rarely.
    const wanted = length > PIECE_BYTES ? Math.max(length, Math.min(2 * this.retained, MAX_BLOCK_BYTES)) : length;
    const larger = this.#take(kind, length, wanted);
    if (larger === NO_BLOCK) return false;
    const heldBack = this.#isOld ? this.#old!.heldBack : 0;
    this.#memory.bytes.copyWithin(larger, this.#block, this.#block + this.#used + heldBack);
    this.#memory.release(this.#block);
    this.#block = larger;
    this.#startAgain(kind, head);
    return true;
  }

  /** Transfers the block to the complete head, or copies it when some of the head's bytes are in scratch. */
  #handOver(head: HeaderBlock, headEnd: number): boolean {
    if (this.#parser.usedScratch) {
      if (!head.retain()) return false;
    } else {
      head.adopt(this.#block, headEnd);
      this.#block = NO_BLOCK;
    }
    this.reset();
    return true;
  }
}

/** Returns whether the result of the parser is an error that a head in the old syntax may cause. */
function mayBeOld(result: number): boolean {
  switch (-result) {
    case H1Error.StatusLine:
    case H1Error.FieldName:
    case H1Error.LineEnd:
    // The value may be on the next line.
    case H1Error.ContentLength:
    case H1Error.Coding:
      return true;
    default:
      return false;
  }
}
