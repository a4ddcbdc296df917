// Passes one message through the filters of a stream in one direction, and tracks what each filter has seen and holds back.
//
// A filter that stops at the headers still receives the data, so that it can collect a body. The filters after it see nothing until it
// continues. The two directions differ only in the callbacks and in the message's destination.

import { HeldBytes } from '../../io/held-bytes.js';
import type { Memory } from '../../io/memory.js';
import { type HeaderBlock, headerBlocks } from '../headers/header-block.js';
import { DataStatus, HeadersStatus, type HttpFilter } from './filter.js';

/** What one filter holds back. */
interface Hold {
  headers: boolean;
  body: HeldBytes;
  trailers: boolean;
  /** The end of the message has reached this filter. */
  endStream: boolean;
}

export abstract class FilterPass {
  readonly #filters: readonly HttpFilter[];
  readonly #memory: Memory;
  readonly #holds: (Hold | undefined)[] = [];
  #headers: HeaderBlock | undefined;
  #trailers: HeaderBlock | undefined;
  /**
   * Set while this object holds the block too: the codec releases it when the message is complete, which may be before a filter continues.
   */
  #holdsHeaders = false;
  #holdsTrailers = false;
  #isFinished = false;
  /** Index of the filter whose callback is running; NONE once it has continued within the callback. */
  #running = NONE;
  /** The running callback is that for the head. */
  #runsHead = false;
  /** The running callback's headers or data end the message. */
  #runsEnd = false;
  /** Index of the filter that added trailers to a message without any. */
  #trailersOf = NONE;
  /** Maximum bytes that one filter may hold back. */
  limit: number;

  constructor(filters: readonly HttpFilter[], memory: Memory, limit: number) {
    this.#filters = filters;
    this.#memory = memory;
    this.limit = limit;
  }

  protected abstract callHeaders(filter: HttpFilter, headers: HeaderBlock, endStream: boolean): HeadersStatus;
  /** `absent`: the result for a filter without this callback. */
  protected abstract callData(
    filter: HttpFilter,
    offset: number,
    length: number,
    endStream: boolean,
    absent: DataStatus,
  ): DataStatus;
  protected abstract callTrailers(filter: HttpFilter, trailers: HeaderBlock, absent: HeadersStatus): HeadersStatus;

  /** Receives the message after the last filter. */
  protected abstract passHeaders(headers: HeaderBlock, endStream: boolean): void;
  protected abstract passData(offset: number, length: number, endStream: boolean): void;
  protected abstract passTrailers(trailers: HeaderBlock): void;
  /** Called when a filter would hold back more than its limit. */
  protected abstract tooLarge(): void;
  /** Called when the arena is full. */
  protected abstract noRoom(): void;

  /** The head of the message has arrived. */
  get hasBegun(): boolean {
    return this.#headers !== undefined;
  }

  /** Returns how many body bytes `filter` holds back. */
  heldBytes(filter: HttpFilter): number {
    return this.#holds[this.#filters.indexOf(filter)]?.body.bytes ?? 0;
  }

  /** Body bytes that all filters hold back. */
  get allHeldBytes(): number {
    let sum = 0;
    for (const hold of this.#holds) sum += hold?.body.bytes ?? 0;
    return sum;
  }

  /**
   * Returns whether `filter` holds the head back, or has it in a running callback. Throws in any other callback of the filter: the filters
   * after it have seen the head.
   */
  canReplaceRoute(filter: HttpFilter): boolean {
    const index = this.#filters.indexOf(filter);
    if (index < 0) return false;
    if (this.#holds[index]?.headers === true) return true;
    if (index !== this.#running) return false;
    if (this.#runsHead) return true;
    throw new Error('continueWithNewRoute() was called in a callback after the one that has passed the head on');
  }

  /** Returns whether the callback of `filter` for the head is running. */
  runsHeadOf(filter: HttpFilter): boolean {
    return this.#runsHead && this.#filters[this.#running] === filter;
  }

  headers(headers: HeaderBlock, endStream: boolean): void {
    this.#headers = headers;
    this.#headersFrom(0, endStream);
  }

  data(offset: number, length: number, endStream: boolean): void {
    this.#dataFrom(0, offset, length, endStream);
  }

  trailers(trailers: HeaderBlock): void {
    this.#trailers = trailers;
    this.#trailersFrom(0);
  }

  /**
   * Passes what `filter` holds back to the filters after it. Within a callback of `filter`, this happens when the callback returns, and
   * includes what the callback is about. A no-op when it holds nothing.
   */
  continue(filter: HttpFilter): void {
    const index = this.#filters.indexOf(filter);
    if (index < 0) return;
    if (index === this.#running) this.#running = NONE;
    else if (this.#holds[index] !== undefined) this.#release(index);
  }

  /** Appends `bytes` to the body that `filter` holds back. A no-op unless it holds something or its callback is running. */
  add(filter: HttpFilter, bytes: Uint8Array): void {
    const index = this.#filters.indexOf(filter);
    if (index < 0 || (index !== this.#running && this.#holds[index] === undefined)) return;
    this.#keep(this.#hold(index).body, 0, bytes.length, bytes);
  }

  /**
   * Passes `bytes` to the filters after `filter`, ahead of what it holds back. A no-op while it holds the head, and unless it holds something
   * or its callback is running.
   */
  inject(filter: HttpFilter, bytes: Uint8Array): void {
    const index = this.#filters.indexOf(filter);
    if (index < 0 || bytes.length === 0) return;
    const hold = this.#holds[index];
    if (hold === undefined ? index !== this.#running : hold.headers) return;
    const memory = this.#memory;
    for (let at = 0; at < bytes.length && !this.#isFinished; at += INJECTED_BYTES) {
      const piece = bytes.subarray(at, at + INJECTED_BYTES);
      const offset = memory.scratch(piece.length);
      memory.bytes.set(piece, offset);
      this.#dataFrom(index + 1, offset, piece.length, false);
    }
  }

  /** Passes the head that `filter` holds back on, and goes on holding the rest. A no-op in its callbacks and when it holds no head. */
  passHead(filter: HttpFilter): void {
    const index = this.#filters.indexOf(filter);
    const hold = this.#holds[index];
    if (index === this.#running || hold?.headers !== true) return;
    hold.headers = false;
    this.#headersFrom(index + 1, false);
  }

  /** Returns a copy of the body that `filter` holds back. */
  copyHeld(filter: HttpFilter): Buffer {
    const body = this.#holds[this.#filters.indexOf(filter)]?.body;
    const copy = Buffer.allocUnsafeSlow(body?.bytes ?? 0);
    let at = 0;
    body?.forEach((offset, length) => {
      copy.set(this.#memory.bytes.subarray(offset, offset + length), at);
      at += length;
    });
    return copy;
  }

  /** Drops the body that `filter` holds back. */
  dropHeld(filter: HttpFilter): void {
    this.#holds[this.#filters.indexOf(filter)]?.body.clear();
  }

  /**
   * Returns an empty trailer block for a message that ends without trailers; the filters after `filter` receive it. The end of the message
   * must be held by `filter` or be the subject of its running callback. Returns undefined otherwise, when the message has trailers, and
   * when the arena is full.
   */
  addTrailers(filter: HttpFilter): HeaderBlock | undefined {
    const index = this.#filters.indexOf(filter);
    if (index < 0 || this.#trailers !== undefined) return undefined;
    const hold = this.#holds[index];
    if (index === this.#running ? !this.#runsEnd : hold?.endStream !== true) return undefined;
    const trailers = headerBlocks(this.#memory).take();
    if (!trailers.retain()) {
      trailers.drop();
      this.noRoom();
      return undefined;
    }
    this.#trailers = trailers;
    this.#holdsTrailers = true;
    if (index === this.#running) this.#trailersOf = index;
    else hold!.trailers = true;
    return trailers;
  }

  /** Ends the pass with its stream: releases what is held, and passes nothing more. */
  end(): void {
    this.#isFinished = true;
    for (const hold of this.#holds) {
      hold?.body.clear();
      // A filter that still holds a block may change it later, when what it waits for arrives: the block must not be reused for another
      // message.
      if (hold?.headers === true && this.#holdsHeaders) {
        this.#headers?.abandon();
        this.#holdsHeaders = false;
      }
      if (hold?.trailers === true && this.#holdsTrailers) {
        this.#trailers?.abandon();
        this.#holdsTrailers = false;
      }
    }
    this.#holds.length = 0;
    if (this.#holdsHeaders) this.#headers?.drop();
    if (this.#holdsTrailers) this.#trailers?.drop();
    this.#holdsHeaders = this.#holdsTrailers = false;
    this.#headers = this.#trailers = undefined;
  }

  #headersFrom(first: number, endStream: boolean): void {
    const headers = this.#headers!;
    for (let index = first; index < this.#filters.length; index++) {
      const caller = this.#running;
      const callerEnds = this.#runsEnd;
      this.#running = index;
      this.#runsEnd = endStream;
      this.#runsHead = true;
      const status = this.callHeaders(this.#filters[index]!, headers, endStream);
      this.#runsHead = false;
      if (this.#isFinished) return;
      const continues = status === HeadersStatus.Continue || this.#running === NONE;
      this.#running = caller;
      this.#runsEnd = callerEnds;
      const addsTrailers = this.#trailersOf === index;
      if (continues && this.#holds[index] === undefined && !addsTrailers) continue;
      const hold = this.#hold(index);
      hold.headers = true;
      hold.endStream = endStream;
      hold.trailers = addsTrailers;
      if (continues) this.#release(index);
      // The head must stay valid until the filter continues, which may be in a later turn.
      else if (!this.#holdsHeaders && !headers.hold()) this.noRoom();
      else this.#holdsHeaders = true;
      return;
    }
    this.passHeaders(headers, endStream);
  }

  #dataFrom(first: number, offset: number, length: number, endStream: boolean): void {
    for (let index = first; index < this.#filters.length; index++) {
      const absent = this.#holds[index] === undefined ? DataStatus.Continue : DataStatus.StopAndBuffer;
      const caller = this.#running;
      const callerEnds = this.#runsEnd;
      this.#running = index;
      this.#runsEnd = endStream;
      const status = this.callData(this.#filters[index]!, offset, length, endStream, absent);
      if (this.#isFinished) return;
      const continues = status === DataStatus.Continue || this.#running === NONE;
      this.#running = caller;
      this.#runsEnd = callerEnds;
      const isDropped = status === DataStatus.StopNoBuffer;
      const addsTrailers = this.#trailersOf === index;
      if (continues && !isDropped && this.#holds[index] === undefined && !addsTrailers) continue;
      const hold = this.#hold(index);
      hold.endStream = endStream;
      hold.trailers = addsTrailers;
      if (!isDropped && !this.#keep(hold.body, offset, length)) return;
      if (continues) this.#release(index);
      return;
    }
    this.passData(offset, length, endStream);
  }

  #trailersFrom(first: number): void {
    const trailers = this.#trailers!;
    for (let index = first; index < this.#filters.length; index++) {
      const absent = this.#holds[index] === undefined ? HeadersStatus.Continue : HeadersStatus.StopIteration;
      const caller = this.#running;
      const callerEnds = this.#runsEnd;
      this.#running = index;
      this.#runsEnd = false;
      const status = this.callTrailers(this.#filters[index]!, trailers, absent);
      if (this.#isFinished) return;
      const continues = status === HeadersStatus.Continue || this.#running === NONE;
      this.#running = caller;
      this.#runsEnd = callerEnds;
      if (continues && this.#holds[index] === undefined) continue;
      this.#hold(index).trailers = true;
      if (continues) this.#release(index);
      else if (!this.#holdsTrailers && !trailers.hold()) this.noRoom();
      else this.#holdsTrailers = true;
      return;
    }
    this.passTrailers(trailers);
  }

  #hold(index: number): Hold {
    return (this.#holds[index] ??= {
      headers: false,
      body: new HeldBytes(this.#memory),
      trailers: false,
      endStream: false,
    });
  }

  #keep(body: HeldBytes, offset: number, length: number, source?: Uint8Array): boolean {
    if (body.bytes + length > this.limit) this.tooLarge();
    else if (body.append(offset, length, source)) return true;
    else this.noRoom();
    return false;
  }

  /** Passes what the filter at `index` held back to the filters after it. */
  #release(index: number): void {
    const hold = this.#holds[index]!;
    this.#holds[index] = undefined;
    try {
      this.#pass(hold, index + 1);
    } finally {
      hold.body.clear();
    }
  }

  #pass({ headers, body, trailers, endStream }: Hold, next: number): void {
    const endsWithBody = endStream && !trailers;
    if (headers) this.#headersFrom(next, endsWithBody && body.bytes === 0);
    if (body.bytes > 0) {
      let left = body.bytes;
      body.forEach((offset, length) => {
        left -= length;
        if (!this.#isFinished) this.#dataFrom(next, offset, length, endsWithBody && left === 0);
      });
    } else if (endsWithBody && !headers && !this.#isFinished) {
      this.#dataFrom(next, 0, 0, true);
    }
    if (trailers && !this.#isFinished) this.#trailersFrom(next);
  }
}

const NONE = -1;

/** Bytes of one piece, which must fit into the memory of a turn. */
const INJECTED_BYTES = 16 * 1024;
