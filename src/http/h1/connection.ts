// The common part of both ends of an HTTP/1 connection: receiving bytes, reading and writing bodies, pausing, ending.
//
// #step() handles bytes piece by piece, in a loop and never recursively: the effects of a callback on the codec (a response, a pause, the
// end of the exchange) are in the codec's state when the callback returns. Bytes that cannot be handled yet are held. While any are held,
// the connection is not read, so at most the bytes of one receive event are held.

import { StreamBytes } from '../../access-log/stream/stream-bytes.js';
import { HeldBytes } from '../../io/held-bytes.js';
import type { Memory } from '../../io/memory.js';
import { getLogger } from '../../log/logger.js';
import type { ConnectionCodec } from '../codec/connections.js';
import type { Http1Options } from '../codec/options.js';
import {
  type ByteSink,
  type CodecError,
  type RequestDecoder,
  ResetReason,
  type ResponseDecoder,
} from '../codec/streams.js';
import type { HeaderBlock } from '../headers/header-block.js';
import { BODY_END_BYTES, ChunkedDecoder, ChunkState, endsBody, sendChunk } from './chunked.js';
import { codecError, H1Error } from './errors.js';
import { Char } from './head/characters.js';
import { HeadKind, INCOMPLETE } from './head/head-parser.js';
import { HeadReader } from './head/head-reader.js';
import { sendTrailers } from './serializer.js';
import { type H1Shared, h1Shared } from './shared.js';

const logger = getLogger('http');

/** What the next received byte belongs to. */
export const enum Reading {
  /** A head, or the empty line before it. */
  Head = 0,
  /** Body of `readLeft` bytes. */
  Length = 1,
  Chunked = 2,
  Trailers = 3,
  /** Raw bytes up to the end of the connection: a body without length, a tunnel. */
  Raw = 4,
  /** The message is complete; nothing is read until the exchange has finished. */
  Complete = 5,
  /** Nothing is read any more. */
  Closed = 6,
}

/** How the next sent byte is framed. */
export const enum Writing {
  /** No head has been sent yet. */
  Head = 0,
  /** Body of `writeLeft` bytes. */
  Length = 1,
  Chunked = 2,
  Raw = 3,
  /** There is no body; data is dropped (HEAD). */
  Nothing = 4,
  Complete = 5,
}

/**
 * Steps that one connection may take in a turn: heads, pieces of bodies, and bytes sent meanwhile. One receive event may contain many small
 * pieces: pipelined requests that get local replies, or chunks of one byte.
 */
const SHARE = 256;
/** Additional steps for a head, which costs as much as this many pieces of a body. */
const HEAD_STEPS = 15;
/** Every 4 KiB sent count as a step, because the send queue reports a blocked peer only after the turn. */
const SENT_STEP_SHIFT = 12;
const EMPTY_LINE_BYTES = 2;

export abstract class H1Connection<Decoder extends RequestDecoder | ResponseDecoder> implements ConnectionCodec {
  protected readonly memory: Memory;
  protected readonly shared: H1Shared;
  /** Set before the first receive(). */
  protected sink!: ByteSink;
  protected readonly limits: Http1Options;
  readonly #kind: HeadKind;

  /** Byte counts of the current exchange. */
  readonly bytes = new StreamBytes();
  protected decoder: Decoder | undefined;
  /** The head of the received message. */
  protected head: HeaderBlock | undefined;
  protected reading: Reading;
  protected writing: Writing = Writing.Head;
  /** The peer has half-closed. */
  protected ended = false;
  protected held: HeldBytes | undefined;
  /** The received part of a head for which the arena has no room. Nothing is read until there is room. */
  protected aside: Uint8Array | undefined;
  /** The send queue is above its high watermark. */
  protected isBlocked = false;
  /** destroy() was called: the owner gets no more callbacks. */
  protected isDestroyed = false;

  #readLeft = 0;
  #writeLeft = 0;
  /** Steps left in this run of receive() or resume(). */
  #share = 0;
  #awaitsTurn = false;
  #chunked: ChunkedDecoder | undefined;
  #reader: HeadReader | undefined;
  #trailers: HeaderBlock | undefined;
  #isRunning = false;
  #isPaused = false;
  #isSinkPaused = false;

  /** `kind`: whether requests or responses are received. */
  constructor(memory: Memory, limits: Http1Options, kind: HeadKind, reading: Reading) {
    this.memory = memory;
    this.shared = h1Shared(memory);
    this.limits = limits;
    this.#kind = kind;
    this.reading = reading;
  }

  /** Called when this.head is complete. */
  protected abstract onHead(): void;
  /** Called for invalid input; nothing more is read. */
  protected abstract onInvalid(error: CodecError): void;
  /** Called when the received message is complete; reading is Complete. */
  protected abstract onReadComplete(): void;
  /** Called for bytes after a complete message. Returns whether to hold them until the exchange has finished. */
  protected abstract onSurplus(): boolean;
  /** Called when received bytes have been handled as far as possible. */
  protected abstract onHandled(): void;
  /** Called when the sent message is complete; writing is Complete. */
  protected abstract onWriteComplete(): void;
  /**
   * Called when the sent body does not have the length that its head announced: the stream is reset, and the connection must be reset so
   * that the peer notices.
   */
  protected abstract onWriteBroken(): void;
  /** Called when the peer has half-closed and everything before that was handled. */
  protected abstract onEnd(): void;

  /** Takes received bytes memory[offset, offset + length), which are valid until the call returns. Not reentrant. */
  receive(offset: number, length: number): void {
    if (this.reading === Reading.Closed || length === 0) return;
    const end = offset + length;
    if (this.held !== undefined) {
      this.#hold(offset, end);
      return;
    }
    let at = offset;
    this.#isRunning = true;
    this.#share = SHARE;
    while (at < end && this.#canRead() && this.#share > 0) at = this.#step(at, end);
    this.#isRunning = false;
    if (at < end && !this.isClosed) {
      if (this.#canRead()) this.awaitTurn();
      if (this.aside === undefined) this.#hold(at, end);
      else this.aside = Buffer.concat([this.aside, this.memory.bytes.subarray(at, end)]);
    } else if (this.#isSinkPaused) this.#syncSink();
    this.onHandled();
  }

  /** Called when the peer has half-closed (FIN). */
  end(): void {
    if (this.ended || this.reading === Reading.Closed) return;
    this.ended = true;
    if (this.held === undefined) this.onEnd();
  }

  /** Called when the send queue rises above its high watermark. */
  blocked(): void {
    this.isBlocked = true;
    this.decoder?.onWriteBlocked();
  }

  /** Called when the send queue falls below its low watermark. */
  drained(): void {
    this.isBlocked = false;
    this.decoder?.onWriteDrained();
    this.resume();
  }

  pauseReading(): void {
    this.#isPaused = true;
    this.#syncSink();
  }

  resumeReading(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.resume();
    this.#syncSink();
  }

  /** Continues after sink.requestTurn(). */
  takeTurn(): void {
    this.#awaitsTurn = false;
    if (!this.isClosed) this.resume();
  }

  /** The announced content length has been sent, whether the stream has ended or not. */
  protected get hasSentLength(): boolean {
    return this.writing === Writing.Length && this.#writeLeft === 0;
  }

  /** Sends body bytes, which must stay valid until the call returns or, in the arena, until they are released. */
  data(offset: number, length: number, endStream: boolean): void {
    this.#share -= length >>> SENT_STEP_SHIFT;
    switch (this.writing) {
      case Writing.Chunked:
        this.bytes.sent += sendChunk(this.sink, this.memory, this.shared.lines, offset, length, endStream);
        break;
      case Writing.Length: {
        const allowed = Math.min(length, this.#writeLeft);
        if (allowed > 0) this.sink.send(offset, allowed);
        this.bytes.sent += allowed;
        this.#writeLeft -= allowed;
        if (allowed < length || (endStream && this.#writeLeft > 0)) return this.#breakLength();
        break;
      }
      case Writing.Raw:
        if (length > 0) this.sink.send(offset, length);
        this.bytes.sent += length;
        break;
      case Writing.Nothing:
        break;
      default:
        return;
    }
    if (endStream) this.completeWriting();
  }

  /** Ends the sent message with trailer fields, or without them if the body is not chunked. */
  trailers(trailers: HeaderBlock): void {
    if (this.writing === Writing.Chunked && this.limits.dropsTrailers !== true) {
      sendTrailers(this.sink, this.shared, trailers, this.bytes);
      this.completeWriting();
    } else this.data(0, 0, true);
  }

  /** Received bytes that are buffered: an incomplete head, or input that cannot be handled yet. */
  get bufferedBytes(): number {
    return (this.#reader?.kept ?? 0) + (this.held?.bytes ?? 0) + (this.aside?.length ?? 0);
  }

  /** Bytes of the arena that the buffered bytes occupy. */
  get retainedBytes(): number {
    return (this.#reader?.retained ?? 0) + (this.held?.retainedBytes ?? 0);
  }

  /** The only buffered bytes are an empty line after the last message, which begins no request. */
  get holdsNoRequest(): boolean {
    return this.reading === Reading.Head && this.held === undefined && this.#reader?.keepsEmptyLine === true;
  }

  /** Returns a copy of the buffered bytes, in order. */
  copyBuffered(): Uint8Array {
    if (this.aside !== undefined) return this.aside;
    const copy = new Uint8Array(this.bufferedBytes);
    const { bytes } = this.memory;
    let at = this.#reader?.kept ?? 0;
    if (at > 0) copy.set(bytes.subarray(this.#reader!.keptAt, this.#reader!.keptAt + at));
    this.held?.forEach((offset, length) => {
      copy.set(bytes.subarray(offset, offset + length), at);
      at += length;
    });
    return copy;
  }

  /** Releases everything after the connection has closed. An unfinished stream gets onReset(); no other callback follows. */
  destroy(): void {
    this.isDestroyed = true;
    this.reading = Reading.Closed;
    this.writing = Writing.Complete;
    const { decoder } = this;
    this.forgetStream();
    decoder?.onReset(ResetReason.ConnectionTermination, undefined);
    this.dropInput();
    this.dropHead();
  }

  /** Nothing more is read or sent. */
  protected get isClosed(): boolean {
    return this.reading === Reading.Closed;
  }

  /** Returns whether a new head may be read now. */
  protected canStart(): boolean {
    return true;
  }

  /** Called when the arena has no room for bytes[at, end) of a head. Returns whether they were set aside until there is room. */
  protected awaitsRoom(_at: number, _end: number): boolean {
    return false;
  }

  /** Moves the received part of a head out of the arena. */
  protected putAside(at: number, end: number): void {
    const kept = this.copyBuffered();
    // The held bytes include these.
    this.aside = this.held === undefined ? Buffer.concat([kept, this.memory.bytes.subarray(at, end)]) : kept;
    this.#dropKept();
    this.dropHead();
    this.#syncSink();
  }

  /** Resumes the head that was set aside. Returns false when there is still no room. */
  protected takeFromAside(): boolean {
    const { aside } = this;
    if (aside === undefined) return true;
    const held = new HeldBytes(this.memory);
    if (!held.append(0, aside.length, aside)) {
      held.clear();
      return false;
    }
    this.aside = undefined;
    this.held = held;
    this.resume();
    return true;
  }

  protected readLength(length: number): void {
    this.#readLeft = length;
    this.reading = Reading.Length;
  }

  protected readChunked(): void {
    this.#chunked ??= new ChunkedDecoder();
    this.#chunked.begin(this.#kind === HeadKind.Response);
    this.reading = Reading.Chunked;
  }

  protected writeLength(length: number): void {
    this.#writeLeft = length;
    this.writing = Writing.Length;
  }

  protected completeWriting(): void {
    if (this.writing === Writing.Length && this.#writeLeft > 0) return this.#breakLength();
    this.writing = Writing.Complete;
    this.onWriteComplete();
  }

  /** Only a filter that changes a body without its content-length causes this: peers' messages have been checked. */
  #breakLength(): void {
    logger.error(
      'message aborted: its body is longer or shorter than its content-length; a filter that changes a body must set or remove content-length',
    );
    this.onWriteBroken();
  }

  /** Handles held bytes as far as the state allows. */
  protected resume(): void {
    if (this.#isRunning) return;
    const held = this.held;
    if (held !== undefined) {
      this.#isRunning = true;
      this.#share = SHARE;
      while (!held.isEmpty && this.#canRead() && this.#share > 0) {
        const { start, end } = held.front;
        const at = this.#step(start, end);
        if (this.held === held) held.consume(at);
      }
      this.#isRunning = false;
      // Bytes after a complete message may have arrived before it was complete.
      if (this.held === held && !held.isEmpty && this.reading === Reading.Complete && !this.onSurplus()) held.clear();
      if (held.isEmpty) this.held = undefined;
      if (this.isClosed) return;
      if (this.held !== undefined && this.#canRead()) this.awaitTurn();
      if (this.held === undefined && this.ended) this.onEnd();
      this.onHandled();
    }
    this.#syncSink();
  }

  /** receive() or resume() is on the stack: it checks the state after each callback. */
  protected get isRunning(): boolean {
    return this.#isRunning;
  }

  /** The codec is like a new one: no exchange, nothing buffered, nothing paused. */
  protected get isPristine(): boolean {
    return (
      this.reading === Reading.Head &&
      this.decoder === undefined &&
      this.held === undefined &&
      this.#reader === undefined &&
      !this.ended &&
      !this.isBlocked &&
      !this.#isRunning &&
      !this.#awaitsTurn &&
      !this.#isSinkPaused
    );
  }

  /** Detaches the stream of this exchange. The next one starts unpaused. */
  protected forgetStream(): void {
    this.decoder = undefined;
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#syncSink();
  }

  /** Counts the fields of a received head, as Envoy does: each with a colon and a line end. */
  protected countHead(head: HeaderBlock): void {
    const { headEnd, size, startLineEnd } = head;
    const first = size > 0 ? head.nameStart(0) : startLineEnd;
    // Fields lie side by side, with a space after each colon.
    this.bytes.headersReceived += headEnd > 0 ? headEnd - EMPTY_LINE_BYTES - first - size : head.fieldBytes + 3 * size;
  }

  protected dropHead(): void {
    this.head?.drop();
    this.head = undefined;
  }

  /** Stops reading because of invalid input. */
  protected fail(code: H1Error): void {
    this.refuse(codecError(code));
  }

  /** Stops reading. Input is dropped last: the head, or its readable part, may lie in it. */
  protected refuse(error: CodecError): void {
    this.reading = Reading.Closed;
    this.onInvalid(error);
    this.dropInput();
  }

  /** Discards received bytes that are not handled yet. */
  protected dropInput(): void {
    this.aside = undefined;
    this.#dropKept();
  }

  #dropKept(): void {
    this.held?.clear();
    this.held = undefined;
    this.#reader?.reset();
    this.#reader = undefined;
    this.#trailers?.drop();
    this.#trailers = undefined;
  }

  #canRead(): boolean {
    if (this.reading >= Reading.Complete) return false;
    return this.reading === Reading.Head ? this.canStart() : !this.#isPaused;
  }

  /** Requests another turn for the held input. */
  protected awaitTurn(): void {
    if (this.#awaitsTurn) return;
    this.#awaitsTurn = true;
    this.sink.requestTurn();
  }

  #hold(at: number, end: number): void {
    if (this.reading === Reading.Complete && !this.onSurplus()) return;
    this.held ??= new HeldBytes(this.memory);
    if (!this.held.append(at, end - at)) {
      this.fail(H1Error.NoMemory);
      return;
    }
    this.#syncSink();
  }

  #syncSink(): void {
    const wanted = this.#isPaused || this.held !== undefined || this.aside !== undefined;
    if (wanted === this.#isSinkPaused || this.reading === Reading.Closed) return;
    this.#isSinkPaused = wanted;
    if (wanted) this.sink.pause();
    else this.sink.resume();
  }

  /** Handles the next piece of the non-empty bytes[at, end). Returns the offset after it. */
  #step(at: number, end: number): number {
    this.#share--;
    switch (this.reading) {
      case Reading.Head: {
        this.head ??= this.shared.blocks.take();
        const behind = this.#readHead(this.#kind, this.head, at, end);
        if (behind === 0) return end;
        this.#share -= HEAD_STEPS;
        this.onHead();
        return behind;
      }
      case Reading.Length: {
        const length = Math.min(this.#readLeft, end - at);
        this.#readLeft -= length;
        this.bytes.received += length;
        this.#deliver(at, length, this.#readLeft === 0);
        return at + length;
      }
      case Reading.Chunked:
        return this.#readChunk(at, end);
      case Reading.Trailers:
        return this.#readTrailers(at, end);
      default:
        this.bytes.received += end - at;
        this.decoder!.onData(at, end - at, false);
        return end;
    }
  }

  /** Continues reading a head. Returns the offset after it, or 0 if it is incomplete or invalid; errors have been handled then. */
  #readHead(kind: HeadKind, head: HeaderBlock, at: number, end: number): number {
    const reader = this.#reader ?? this.shared.reader;
    const result = reader.read(kind, head, at, end, this.limits, this.#kind === HeadKind.Response);
    this.bytes.received += (result > 0 ? result : end) - at;
    if (result > 0) {
      this.#reader = undefined;
      return result;
    }
    if (result !== INCOMPLETE) {
      if (result !== -H1Error.NoMemory || !this.awaitsRoom(at, end)) this.fail(-result);
    } else if (this.#reader === undefined) {
      this.#reader = reader;
      this.shared.reader = new HeadReader(this.memory, this.shared.known);
    }
    return 0;
  }

  /** Reads chunk framing and at most one range of data. */
  #readChunk(at: number, end: number): number {
    const chunked = this.#chunked!;
    const { bytes } = this.memory;
    const start = at;
    at = chunked.advance(bytes, at, end);
    if (at < 0) {
      this.fail(-at);
      return end;
    }
    if (chunked.state === ChunkState.Trailers) {
      this.reading = Reading.Trailers;
      this.bytes.received += at - start;
      return at;
    }
    if (chunked.state !== ChunkState.Data || at === end) {
      this.bytes.received += at - start;
      return at;
    }
    const length = Math.min(chunked.left, end - at);
    chunked.take(length);
    const behind = at + length;
    this.bytes.received += behind - start;
    if (chunked.left === 0 && endsBody(bytes, behind, end)) {
      this.bytes.received += BODY_END_BYTES;
      this.#deliver(at, length, true);
      return behind + BODY_END_BYTES;
    }
    this.decoder!.onData(at, length, false);
    return behind;
  }

  #readTrailers(at: number, end: number): number {
    const { bytes } = this.memory;
    // Usually there are no trailers.
    if (this.#reader === undefined && end - at > 1 && bytes[at] === Char.Cr && bytes[at + 1] === Char.Lf) {
      this.bytes.received += 2;
      this.#deliver(0, 0, true);
      return at + 2;
    }
    this.#trailers ??= this.shared.blocks.take();
    const trailers = this.#trailers;
    const behind = this.#readHead(HeadKind.Trailers, trailers, at, end);
    if (behind === 0) return end;
    this.countHead(trailers);
    this.#trailers = undefined;
    if (trailers.size === 0 || this.limits.dropsTrailers === true) this.#deliver(0, 0, true);
    else {
      this.reading = Reading.Complete;
      this.decoder!.onTrailers(trailers);
      if (this.reading === Reading.Complete) this.onReadComplete();
    }
    trailers.drop();
    return behind;
  }

  /** Passes body bytes to the stream after updating the state. The end of an upgrade request's body does not end the stream. */
  #deliver(at: number, length: number, isLast: boolean): void {
    if (isLast) this.reading = Reading.Complete;
    this.decoder!.onData(at, length, isLast && this.head?.upgrade !== true);
    if (isLast && this.reading === Reading.Complete) this.onReadComplete();
  }
}
