// What a connection sends of its streams: header sections at once, bodies as far as windows and socket allow, the rest in turns, one frame
// of each stream after the other.

import type { HeldBytes } from '../../io/held-bytes.js';
import type { Memory } from '../../io/memory.js';
import type { ByteSink, CodecError } from '../codec/streams.js';
import type { HeaderBlock } from '../headers/header-block.js';
import { CONNECTION_ERROR } from './errors.js';
import type { FloodGuard } from './floods.js';
import type { FrameWriter } from './frame-writer.js';
import { DEFAULT_WINDOW, ErrorCode, FRAME_HEADER_BYTES, MAX_WINDOW } from './frames.js';
import { Section } from './head-builder.js';
import { sendSection } from './head-writer.js';
import { HpackEncoder } from './hpack/encoder.js';
import type { PeerSettings } from './settings.js';
import type { H2Stream } from './stream.js';
import { WaitingStreams } from './waiting-streams.js';

/** Bytes of queued bodies that are sent in a turn. */
const FLUSH_BYTES = 256 * 1024;

/** The connection, as its sender uses it. */
export interface SendingConnection {
  readonly isClosed: boolean;
  /** Called when the last frame of a stream was sent. */
  settle(stream: H2Stream): void;
  failStream(stream: H2Stream, code: ErrorCode, error: CodecError): void;
  newQueue(): HeldBytes;
  /** Called after each frame. */
  countOutbound(isControl: boolean): void;
  /** flush() is to be called in a later turn. */
  requestTurn(): void;
}

export class StreamSender {
  /** The socket accepts no more for now. */
  isBlocked = false;
  readonly #connection: SendingConnection;
  readonly #memory: Memory;
  readonly #peer: PeerSettings;
  readonly #floods: FloodGuard;
  readonly #encoder: HpackEncoder;
  readonly #waiting = new WaitingStreams();
  #sink!: ByteSink;
  #writer!: FrameWriter;
  /** Bytes that the peer still accepts on the connection. */
  #window = DEFAULT_WINDOW;

  constructor(
    connection: SendingConnection,
    memory: Memory,
    peer: PeerSettings,
    floods: FloodGuard,
    usesHuffman: boolean,
  ) {
    this.#connection = connection;
    this.#memory = memory;
    this.#peer = peer;
    this.#floods = floods;
    this.#encoder = new HpackEncoder(memory, usesHuffman);
  }

  open(sink: ByteSink, writer: FrameWriter): void {
    this.#sink = sink;
    this.#writer = writer;
  }

  // ── Messages ─────────────────────────────────────────────────────────────────────────────────────────────────────

  sendHead(stream: H2Stream, headers: HeaderBlock, section: Section, endStream: boolean): void {
    const { maxFrameBytes } = this.#peer;
    const scheme = headers.scheme === 'https' ? 'https' : 'http';
    const sent = sendSection(
      this.#sink,
      this.#memory,
      this.#encoder,
      stream.id,
      headers,
      section,
      endStream,
      maxFrameBytes,
      scheme,
    );
    stream.bytes.sent += sent;
    stream.bytes.headersSent += sent;
    const frames = Math.ceil(sent / (FRAME_HEADER_BYTES + maxFrameBytes));
    for (let i = 0; i < frames; i++) this.#connection.countOutbound(false);
    if (endStream) this.#endSent(stream);
    else if (this.isBlocked) this.blockWriting(stream);
  }

  sendBody(stream: H2Stream, offset: number, length: number, endStream: boolean): void {
    // Queued bytes are counted too: the access log entry is written when the end of the stream is queued.
    const { maxFrameBytes } = this.#peer;
    const frames = length <= maxFrameBytes ? 1 : Math.ceil(length / maxFrameBytes);
    stream.bytes.sent += length + frames * FRAME_HEADER_BYTES;
    if (stream.queue === undefined) {
      const sent = this.#sendNow(stream, offset, length, endStream);
      if (!stream.isOpen) return;
      if (sent === length && (!endStream || stream.isEndSent)) return;
      offset += sent;
      length -= sent;
    }
    this.#enqueue(stream, offset, length);
  }

  sendTrailers(stream: H2Stream, trailers: HeaderBlock): void {
    if (stream.queue === undefined) return this.sendHead(stream, trailers, Section.Trailers, true);
    if (trailers.hold()) stream.queuedTrailers = trailers;
    else this.#connection.failStream(stream, ErrorCode.EnhanceYourCalm, CONNECTION_ERROR);
  }

  /** Called when a stream is over. */
  forget(stream: H2Stream): void {
    if (stream.isWaiting) this.#waiting.remove(stream);
  }

  // ── Windows of the peer ──────────────────────────────────────────────────────────────────────────────────────────

  /** Returns false if the window of the connection becomes larger than allowed. */
  widen(increment: number): boolean {
    this.#window += increment;
    if (this.#window > MAX_WINDOW) return false;
    this.flush();
    return true;
  }

  /** Changes the window of a stream. Returns false if it becomes larger than allowed. */
  shift(stream: H2Stream, change: number): boolean {
    stream.sendWindow += change;
    if (stream.sendWindow > MAX_WINDOW) return false;
    this.#waiting.addIfReady(stream);
    return true;
  }

  setTableLimit(bytes: number): void {
    this.#encoder.setLimit(bytes);
  }

  // ── Queues ───────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Sends queued bytes as far as windows and socket allow. */
  flush(): void {
    let left = FLUSH_BYTES;
    for (let stream = this.#waiting.first; stream !== undefined; stream = this.#waiting.first) {
      if (this.isBlocked || this.#connection.isClosed) return;
      if (left <= 0) return this.#connection.requestTurn();
      left -= this.#flushFrame(stream) + 64;
      if (!stream.isWaiting) continue;
      if (this.#window <= 0) return;
      this.#waiting.remove(stream);
      this.#waiting.addIfReady(stream);
    }
  }

  /** Tells the decoder of a stream to stop writing. */
  blockWriting(stream: H2Stream): void {
    if (stream.isBlocked || stream.decoder === undefined || !stream.hasSentHead) return;
    stream.isBlocked = true;
    stream.decoder.onWriteBlocked();
  }

  /** Lets it continue, unless its queue or the socket forbids. */
  unblockWriting(stream: H2Stream): void {
    if (!stream.isBlocked || stream.queue !== undefined || this.isBlocked) return;
    stream.isBlocked = false;
    stream.decoder?.onWriteDrained();
  }

  /** Sends what windows and socket allow. Returns the number of bytes. */
  #sendNow(stream: H2Stream, offset: number, length: number, endStream: boolean): number {
    let sent = 0;
    do {
      const left = length - sent;
      let part = left;
      if (part > this.#window) part = this.#window;
      if (part > stream.sendWindow) part = stream.sendWindow;
      if (part > this.#peer.maxFrameBytes) part = this.#peer.maxFrameBytes;
      if (left > 0 && (part <= 0 || this.isBlocked)) return sent;
      const isEnd = endStream && part === left;
      this.#window -= part;
      stream.sendWindow -= part;
      this.#floods.dataSent();
      this.#writer.data(stream.id, offset + sent, part, isEnd);
      sent += part;
      if (isEnd) this.#endSent(stream);
    } while (sent < length && stream.isOpen);
    return sent;
  }

  #endSent(stream: H2Stream): void {
    stream.isEndQueued = true;
    stream.isEndSent = true;
    this.#connection.settle(stream);
  }

  #enqueue(stream: H2Stream, offset: number, length: number): void {
    stream.queue ??= this.#connection.newQueue();
    if (length > 0 && !stream.queue.append(offset, length))
      return this.#connection.failStream(stream, ErrorCode.EnhanceYourCalm, CONNECTION_ERROR);
    this.#waiting.addIfReady(stream);
    this.blockWriting(stream);
  }

  /** Sends one frame of a stream's queue. Returns its bytes. */
  #flushFrame(stream: H2Stream): number {
    const queue = stream.queue!;
    let sent = 0;
    if (!queue.isEmpty) {
      const { start, end } = queue.front;
      const length = Math.min(end - start, this.#peer.maxFrameBytes);
      const isLast = length === queue.bytes && stream.isEndQueued && stream.queuedTrailers === undefined;
      sent = this.#sendNow(stream, start, length, isLast);
      if (sent > 0 && stream.isOpen) queue.consume(start + sent);
      if (!stream.isOpen || !queue.isEmpty) return sent;
    }
    this.#waiting.remove(stream);
    stream.queue = undefined;
    this.#endQueue(stream);
    return sent;
  }

  /** Sends what follows the last byte of a queue. */
  #endQueue(stream: H2Stream): void {
    const { queuedTrailers: trailers } = stream;
    if (trailers !== undefined) {
      stream.queuedTrailers = undefined;
      this.sendHead(stream, trailers, Section.Trailers, true);
      trailers.drop();
    } else if (stream.isEndQueued && !stream.isEndSent) this.#sendNow(stream, 0, 0, true);
    else this.unblockWriting(stream);
  }
}
