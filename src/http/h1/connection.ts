// What both ends of an HTTP/1 connection have in common: taking bytes in, reading and writing bodies, pausing, ending.
//
// Bytes go through step() piece by piece, in a loop and never recursively: what a callback does to the codec (answer,
// pause, end the exchange) shows in its state when the callback returns. Bytes that cannot be handled yet are held, and
// while anything is held the peer is not read; so at most the bytes of one receive event are held.

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

/** What the next received byte is. */
export const enum Reading {
  /** A head or what comes before it. */
  Head = 0,
  /** Body of `readLeft` bytes. */
  Length = 1,
  Chunked = 2,
  Trailers = 3,
  /** All bytes up to the end of the connection: a body without length, a tunnel. */
  Raw = 4,
  /** Nothing before the exchange is over. */
  Complete = 5,
  /** Never again. */
  Closed = 6,
}

/** How the next byte to be sent is framed. */
export const enum Writing {
  /** No head was sent yet. */
  Head = 0,
  /** Body of `writeLeft` bytes. */
  Length = 1,
  Chunked = 2,
  Raw = 3,
  /** There is no body; what is given is dropped (HEAD). */
  Nothing = 4,
  Complete = 5,
}

/**
 * Steps that one connection may take before others have their turn: heads, pieces of bodies, and what is sent meanwhile. Many small ones
 * may stand in what was received at once: requests that are answered here, or chunks of a byte.
 */
const SHARE = 256;
/** A head costs as much as so many pieces of a body. */
const HEAD_STEPS = 15;
/** Each 4 KiB that are sent count as a step: the peer cannot be known not to take them before the turn ends. */
const SENT_STEP_SHIFT = 12;

export abstract class H1Connection<Decoder extends RequestDecoder | ResponseDecoder> implements ConnectionCodec {
  protected readonly memory: Memory;
  protected readonly shared: H1Shared;
  /** Set before anything is received. */
  protected sink!: ByteSink;
  protected readonly limits: Http1Options;
  readonly #kind: HeadKind;

  protected decoder: Decoder | undefined;
  /** The head of the message that is being received. */
  protected head: HeaderBlock | undefined;
  protected reading: Reading;
  protected writing: Writing = Writing.Head;
  /** The peer has ended its direction. */
  protected ended = false;
  protected held: HeldBytes | undefined;
  /** What has come of a head for which the arena has no room, in order: nothing is read until it has some. */
  protected aside: Uint8Array | undefined;
  /** The peer takes nothing more for now. */
  protected isBlocked = false;
  /** Its owner wants to hear nothing more. */
  protected isDestroyed = false;

  #readLeft = 0;
  #writeLeft = 0;
  /** What it may still do in this run of receive() or goOn(). */
  #share = 0;
  #awaitsTurn = false;
  #chunked: ChunkedDecoder | undefined;
  #reader: HeadReader | undefined;
  #trailers: HeaderBlock | undefined;
  #isRunning = false;
  #isPaused = false;
  #isSinkPaused = false;

  /** `kind`: what is received, requests or responses. */
  constructor(memory: Memory, limits: Http1Options, kind: HeadKind, reading: Reading) {
    this.memory = memory;
    this.shared = h1Shared(memory);
    this.limits = limits;
    this.#kind = kind;
    this.reading = reading;
  }

  /** A head is complete in this.head. */
  protected abstract onHead(): void;
  /** Bytes that make no sense; no more are read. */
  protected abstract onInvalid(error: CodecError): void;
  /** The received message is complete; reading is Complete. */
  protected abstract onReadComplete(): void;
  /** Bytes stand behind a complete message: tells whether they are to be held until the exchange is over. */
  protected abstract onSurplus(): boolean;
  /** What was received is handled, as far as it can be now. */
  protected abstract onHandled(): void;
  /** The sent message is complete; writing is Complete. */
  protected abstract onWriteComplete(): void;
  /** What was sent is not what its head promised: the stream is reset, and only a broken connection tells the peer. */
  protected abstract onWriteBroken(): void;
  /** The peer has ended its direction, and everything before that was handled. */
  protected abstract onEnd(): void;

  /** Received bytes: memory[offset, offset + length), valid until the call returns. Never called by what it calls. */
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
      if (this.#canRead()) this.#awaitTurn();
      if (this.aside === undefined) this.#hold(at, end);
      else this.aside = Buffer.concat([this.aside, this.memory.bytes.subarray(at, end)]);
    } else if (this.#isSinkPaused) this.#syncSink();
    this.onHandled();
  }

  /** The peer has ended its direction (FIN). */
  end(): void {
    if (this.ended || this.reading === Reading.Closed) return;
    this.ended = true;
    if (this.held === undefined) this.onEnd();
  }

  /** More than the high watermark waits to be sent. */
  blocked(): void {
    this.isBlocked = true;
    this.decoder?.onWriteBlocked();
  }

  /** Less than the low watermark waits to be sent. */
  drained(): void {
    this.isBlocked = false;
    this.decoder?.onWriteDrained();
    this.goOn();
  }

  pauseReading(): void {
    this.#isPaused = true;
    this.#syncSink();
  }

  resumeReading(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.goOn();
    this.#syncSink();
  }

  /** For sink.goOnLater(). */
  takeTurn(): void {
    this.#awaitsTurn = false;
    if (!this.isClosed) this.goOn();
  }

  /** All that the head of the sent message has promised is sent, whether its stream has ended or not. */
  protected get hasSentLength(): boolean {
    return this.writing === Writing.Length && this.#writeLeft === 0;
  }

  /** Body bytes to be sent, valid until the call returns or, when they are in the arena, until they are released. */
  data(offset: number, length: number, endStream: boolean): void {
    this.#share -= length >>> SENT_STEP_SHIFT;
    switch (this.writing) {
      case Writing.Chunked:
        sendChunk(this.sink, this.memory, this.shared.lines, offset, length, endStream);
        break;
      case Writing.Length: {
        const allowed = Math.min(length, this.#writeLeft);
        if (allowed > 0) this.sink.send(offset, allowed);
        this.#writeLeft -= allowed;
        if (allowed < length || (endStream && this.#writeLeft > 0)) return this.#breakLength();
        break;
      }
      case Writing.Raw:
        if (length > 0) this.sink.send(offset, length);
        break;
      case Writing.Nothing:
        break;
      default:
        return;
    }
    if (endStream) this.completeWriting();
  }

  /** Ends the sent message with trailer fields; without chunked coding there is no place for them. */
  trailers(trailers: HeaderBlock): void {
    if (this.writing === Writing.Chunked && this.limits.dropsTrailers !== true) {
      sendTrailers(this.sink, this.shared, trailers);
      this.completeWriting();
    } else this.data(0, 0, true);
  }

  /** Bytes that were received and wait: an unfinished head, or what cannot be handled yet. */
  get bufferedBytes(): number {
    return (this.#reader?.kept ?? 0) + (this.held?.bytes ?? 0) + (this.aside?.length ?? 0);
  }

  /** Bytes of the arena that they take. */
  get retainedBytes(): number {
    return (this.#reader?.retained ?? 0) + (this.held?.retainedBytes ?? 0);
  }

  /** All that waits is an empty line behind the last message, with which nothing begins. */
  get holdsEmptyLine(): boolean {
    return this.reading === Reading.Head && this.held === undefined && this.#reader?.keepsEmptyLine === true;
  }

  /** A copy of them, in order. */
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

  /** The connection is gone: releases everything. A stream that is not over learns it from onReset(); nothing else follows. */
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

  /** Whether a new head may be read now. */
  protected canStart(): boolean {
    return true;
  }

  /** The arena has no room for bytes[at, end) of a head. Returns whether they were put aside until it has some. */
  protected awaitsRoom(_at: number, _end: number): boolean {
    return false;
  }

  /** Puts aside what has come of a head: the arena keeps nothing of it. */
  protected putAside(at: number, end: number): void {
    const kept = this.copyBuffered();
    // What is held includes these bytes.
    this.aside = this.held === undefined ? Buffer.concat([kept, this.memory.bytes.subarray(at, end)]) : kept;
    this.#dropKept();
    this.dropHead();
    this.#syncSink();
  }

  /** Goes on with what was put aside. Returns false when there is still no room. */
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
    this.goOn();
    return true;
  }

  protected readLength(length: number): void {
    this.#readLeft = length;
    this.reading = Reading.Length;
  }

  protected readChunked(): void {
    this.#chunked ??= new ChunkedDecoder();
    this.#chunked.begin();
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

  /** No peer sends such a message: a filter has changed one without the other. */
  #breakLength(): void {
    logger.error(
      'a message is broken off: its body is longer or shorter than its content-length, which a filter that changes bodies sets or removes',
    );
    this.onWriteBroken();
  }

  /** Handles what is held, as far as the state allows it now. */
  protected goOn(): void {
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
      // What stands behind a complete message may have come before it was complete.
      if (this.held === held && !held.isEmpty && this.reading === Reading.Complete && !this.onSurplus()) held.clear();
      if (held.isEmpty) this.held = undefined;
      if (this.isClosed) return;
      if (this.held !== undefined && this.#canRead()) this.#awaitTurn();
      if (this.held === undefined && this.ended) this.onEnd();
      this.onHandled();
    }
    this.#syncSink();
  }

  /** Inside receive() or goOn(): what callbacks change is seen when they return. */
  protected get isRunning(): boolean {
    return this.#isRunning;
  }

  /** Nothing distinguishes it from one that is new: no exchange, nothing kept, nothing stopped. */
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

  /** The stream of this exchange is over: the next one starts unpaused. */
  protected forgetStream(): void {
    this.decoder = undefined;
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#syncSink();
  }

  protected dropHead(): void {
    this.head?.drop();
    this.head = undefined;
  }

  /** What was received is invalid. */
  protected fail(code: H1Error): void {
    this.reading = Reading.Closed;
    this.dropInput();
    this.onInvalid(codecError(code));
  }

  /** Releases received bytes that will never be handled. */
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

  /** It has had its share, and more could be done. */
  #awaitTurn(): void {
    if (this.#awaitsTurn) return;
    this.#awaitsTurn = true;
    this.sink.goOnLater();
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

  /** Handles the next piece of bytes[at, end), which is not empty; returns the offset behind it. */
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
        this.#deliver(at, length, this.#readLeft === 0);
        return at + length;
      }
      case Reading.Chunked:
        return this.#readChunk(at, end);
      case Reading.Trailers:
        return this.#readTrailers(at, end);
      default:
        this.decoder!.onData(at, end - at, false);
        return end;
    }
  }

  /** Reads on in a head: the offset behind it when it is complete; otherwise 0, and an error was dealt with. */
  #readHead(kind: HeadKind, head: HeaderBlock, at: number, end: number): number {
    const reader = this.#reader ?? this.shared.reader;
    const result = reader.read(kind, head, at, end, this.limits);
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

  /** Chunk framing and at most one range of data. */
  #readChunk(at: number, end: number): number {
    const chunked = this.#chunked!;
    const { bytes } = this.memory;
    at = chunked.advance(bytes, at, end);
    if (at < 0) {
      this.fail(-at);
      return end;
    }
    if (chunked.state === ChunkState.Trailers) {
      this.reading = Reading.Trailers;
      return at;
    }
    if (chunked.state !== ChunkState.Data || at === end) return at;
    const length = Math.min(chunked.left, end - at);
    chunked.take(length);
    const behind = at + length;
    if (chunked.left === 0 && endsBody(bytes, behind, end)) {
      this.#deliver(at, length, true);
      return behind + BODY_END_BYTES;
    }
    this.decoder!.onData(at, length, false);
    return behind;
  }

  #readTrailers(at: number, end: number): number {
    const { bytes } = this.memory;
    // Most often there are none.
    if (this.#reader === undefined && end - at > 1 && bytes[at] === Char.Cr && bytes[at + 1] === Char.Lf) {
      this.#deliver(0, 0, true);
      return at + 2;
    }
    this.#trailers ??= this.shared.blocks.take();
    const trailers = this.#trailers;
    const behind = this.#readHead(HeadKind.Trailers, trailers, at, end);
    if (behind === 0) return end;
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

  /** Gives body bytes to the stream; the state is up to date before it hears of them. The body of an upgrade is not its end. */
  #deliver(at: number, length: number, isLast: boolean): void {
    if (isLast) this.reading = Reading.Complete;
    this.decoder!.onData(at, length, isLast && this.head?.upgrade !== true);
    if (isLast && this.reading === Reading.Complete) this.onReadComplete();
  }
}
