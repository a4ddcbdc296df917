// The way of one message through the filters of a stream, in one direction: who has seen what, and who holds what back.
//
// A filter that stops at the headers still gets the data itself, so that it can collect a body; those behind it see
// nothing until it continues. The two directions differ only in the callbacks they call and in where the message ends.

import { HeldBytes } from '../../io/held-bytes.js';
import type { Memory } from '../../io/memory.js';
import { type HeaderBlock, headerBlocks } from '../headers/header-block.js';
import { DataStatus, HeadersStatus, type HttpFilter } from './filter.js';

/** What one filter holds back. */
interface Hold {
  headers: boolean;
  body: HeldBytes;
  trailers: boolean;
  /** The end of the stream has arrived here. */
  endStream: boolean;
}

export abstract class FilterPass {
  readonly #filters: readonly HttpFilter[];
  readonly #memory: Memory;
  readonly #holds: (Hold | undefined)[] = [];
  #headers: HeaderBlock | undefined;
  #trailers: HeaderBlock | undefined;
  /** Their codec gives them up when the message is complete, a filter perhaps not. */
  #holdsHeaders = false;
  #holdsTrailers = false;
  #isOver = false;
  /** The filter whose callback runs, by its place; NOBODY once it has continued in there. */
  #running = NOBODY;
  /** What the callback that runs is about ends the message. */
  #runsEnd = false;
  /** The filter that has given a message trailers which came without, by its place. */
  #trailersOf = NOBODY;
  /** Most bytes that one filter may hold back. */
  limit: number;

  constructor(filters: readonly HttpFilter[], memory: Memory, limit: number) {
    this.#filters = filters;
    this.#memory = memory;
    this.limit = limit;
  }

  protected abstract callHeaders(filter: HttpFilter, headers: HeaderBlock, endStream: boolean): HeadersStatus;
  /** `absent`: the answer for a filter without this callback. */
  protected abstract callData(
    filter: HttpFilter,
    offset: number,
    length: number,
    endStream: boolean,
    absent: DataStatus,
  ): DataStatus;
  protected abstract callTrailers(filter: HttpFilter, trailers: HeaderBlock, absent: HeadersStatus): HeadersStatus;

  /** Where the message goes behind the last filter. */
  protected abstract passHeaders(headers: HeaderBlock, endStream: boolean): void;
  protected abstract passData(offset: number, length: number, endStream: boolean): void;
  protected abstract passTrailers(trailers: HeaderBlock): void;
  /** A filter holds back more than its limit. */
  protected abstract tooLarge(): void;
  /** The arena is full. */
  protected abstract noRoom(): void;

  /** The head of a message has come. */
  get hasBegun(): boolean {
    return this.#headers !== undefined;
  }

  /** Bytes that `filter` holds back. */
  heldBytes(filter: HttpFilter): number {
    return this.#holds[this.#filters.indexOf(filter)]?.body.bytes ?? 0;
  }

  /** Bytes that all filters hold back. */
  get allHeldBytes(): number {
    let sum = 0;
    for (const hold of this.#holds) sum += hold?.body.bytes ?? 0;
    return sum;
  }

  /** Whether `filter` holds the head back: those behind it have seen nothing. */
  holdsHead(filter: HttpFilter): boolean {
    return this.#holds[this.#filters.indexOf(filter)]?.headers === true;
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
   * `filter` goes on: what it held back passes to those behind it, and from within its own callback what that is about too, when it
   * returns. Ignored when it holds nothing.
   */
  continue(filter: HttpFilter): void {
    const index = this.#filters.indexOf(filter);
    if (index < 0) return;
    if (index === this.#running) this.#running = NOBODY;
    else if (this.#holds[index] !== undefined) this.#release(index);
  }

  /** `filter` holds these behind what it holds of the body. Ignored when it neither holds anything nor is being asked. */
  add(filter: HttpFilter, bytes: Uint8Array): void {
    const index = this.#filters.indexOf(filter);
    if (index < 0 || (index !== this.#running && this.#holds[index] === undefined)) return;
    this.#keep(this.#hold(index).body, 0, bytes.length, bytes);
  }

  /**
   * Trailers, empty yet, for a message that ends without: when its end has come to `filter`, which is being asked about it or holds it.
   * Those behind it get them. Undefined at any other time, when there are trailers, and when the arena is full.
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

  /** The stream is over: nothing passes any more, and nothing is held. */
  end(): void {
    this.#isOver = true;
    for (const hold of this.#holds) {
      hold?.body.clear();
      // A filter that holds them may wait for something, and change them when it comes: no other message may have them then.
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
      const callersEnd = this.#runsEnd;
      this.#running = index;
      this.#runsEnd = endStream;
      const status = this.callHeaders(this.#filters[index]!, headers, endStream);
      if (this.#isOver) return;
      const goesOn = status === HeadersStatus.Continue || this.#running === NOBODY;
      this.#running = caller;
      this.#runsEnd = callersEnd;
      const addsTrailers = this.#trailersOf === index;
      if (goesOn && this.#holds[index] === undefined && !addsTrailers) continue;
      const hold = this.#hold(index);
      hold.headers = true;
      hold.endStream = endStream;
      hold.trailers = addsTrailers;
      if (goesOn) this.#release(index);
      // The head must live until the filter continues, in a later turn perhaps.
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
      const callersEnd = this.#runsEnd;
      this.#running = index;
      this.#runsEnd = endStream;
      const status = this.callData(this.#filters[index]!, offset, length, endStream, absent);
      if (this.#isOver) return;
      const goesOn = status === DataStatus.Continue || this.#running === NOBODY;
      this.#running = caller;
      this.#runsEnd = callersEnd;
      const isDropped = status === DataStatus.StopNoBuffer;
      const addsTrailers = this.#trailersOf === index;
      if (goesOn && !isDropped && this.#holds[index] === undefined && !addsTrailers) continue;
      const hold = this.#hold(index);
      hold.endStream = endStream;
      hold.trailers = addsTrailers;
      if (!isDropped && !this.#keep(hold.body, offset, length)) return;
      if (goesOn) this.#release(index);
      return;
    }
    this.passData(offset, length, endStream);
  }

  #trailersFrom(first: number): void {
    const trailers = this.#trailers!;
    for (let index = first; index < this.#filters.length; index++) {
      const absent = this.#holds[index] === undefined ? HeadersStatus.Continue : HeadersStatus.StopIteration;
      const caller = this.#running;
      const callersEnd = this.#runsEnd;
      this.#running = index;
      this.#runsEnd = false;
      const status = this.callTrailers(this.#filters[index]!, trailers, absent);
      if (this.#isOver) return;
      const goesOn = status === HeadersStatus.Continue || this.#running === NOBODY;
      this.#running = caller;
      this.#runsEnd = callersEnd;
      if (goesOn && this.#holds[index] === undefined) continue;
      this.#hold(index).trailers = true;
      if (goesOn) this.#release(index);
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

  /** Passes what the filter at `index` held to those behind it. */
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
        if (!this.#isOver) this.#dataFrom(next, offset, length, endsWithBody && left === 0);
      });
    } else if (endsWithBody && !headers && !this.#isOver) {
      this.#dataFrom(next, 0, 0, true);
    }
    if (trailers && !this.#isOver) this.#trailersFrom(next);
  }
}

const NOBODY = -1;
