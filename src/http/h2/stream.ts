// One stream, as both ends of a connection have it: the state of its two directions, and bytes that wait for a window or for their reader.

import { StreamBytes } from '../../access-log/stream/stream-bytes.js';
import type { HeldBytes } from '../../io/held-bytes.js';
import type { RequestDecoder, ResetReason, ResponseDecoder } from '../codec/streams.js';
import type { HeaderBlock } from '../headers/header-block.js';
import { errorCodeOf } from './errors.js';
import type { ErrorCode } from './frames.js';
import type { Section } from './head-builder.js';

/** The connection of a stream, as the stream uses it. */
export interface StreamCarrier {
  /** Sends a header section. */
  sendHead(stream: H2Stream, headers: HeaderBlock, section: Section, endStream: boolean): void;
  /** Sends body bytes, or queues those that the windows do not allow. */
  sendBody(stream: H2Stream, offset: number, length: number, endStream: boolean): void;
  /** Sends trailers after what is queued. */
  sendTrailers(stream: H2Stream, trailers: HeaderBlock): void;
  /** Resets the stream and forgets it, without a callback to its decoder. */
  resetStream(stream: H2Stream, code: ErrorCode): void;
  /** Called when received bytes were consumed. */
  consumed(stream: H2Stream, length: number): void;
  /** Called when the last held bytes have been delivered, or when a direction has ended. */
  settle(stream: H2Stream): void;
  /** Refuses an upgrade that has a body: the host could not tell it from the tunnel. */
  refuseTunnel(stream: H2Stream): void;
  /** Returns an empty head, which the caller drops. */
  newHead(): HeaderBlock;
  /** Returns an empty queue. */
  newQueue(): HeldBytes;
}

export abstract class H2Stream {
  id = 0;
  /** Counts frames with their headers, as in Envoy: those of heads and trailers, and those of bodies. */
  readonly bytes = new StreamBytes();
  protected carrier!: StreamCarrier;
  /** Undefined when the other side of this codec no longer listens. */
  decoder: RequestDecoder | ResponseDecoder | undefined;
  /** The head of the received message. */
  head: HeaderBlock | undefined;
  /** It is in the connection's table of streams. */
  isOpen = false;

  /** The request asks for an upgrade, as an extended CONNECT; it is a CONNECT. */
  isUpgrade = false;
  isConnect = false;
  /** The host has accepted: both directions carry raw bytes, and end one by one. */
  isTunnel = false;
  /** This side has ended its direction of a tunnel while the peer goes on. */
  isHalfClosed = false;
  /** It stays after its end, until its bytes have been read. */
  isEndHeld = false;

  // ── Sending ──────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Bytes that the peer still accepts. */
  sendWindow = 0;
  /** Body bytes that wait for a window. */
  queue: HeldBytes | undefined;
  /** Trailers that follow them. */
  queuedTrailers: HeaderBlock | undefined;
  /** The message that is sent has begun; it is complete; its end was sent. */
  hasSentHead = false;
  isEndQueued = false;
  isEndSent = false;
  /** The decoder was told to stop writing. */
  isBlocked = false;
  /** Links of the connection's list of streams that may send from their queue. */
  previousWaiting: H2Stream | undefined;
  nextWaiting: H2Stream | undefined;
  isWaiting = false;
  /** Bytes of the queue when its progress was last observed, and when that was (monotonic). */
  stuckBytes = -1;
  stuckSinceMs = 0;

  // ── Receiving ────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Bytes that the peer may still send. */
  receiveWindow = 0;
  /** Consumed bytes that the peer was not told about. */
  consumedBytes = 0;
  hasReceivedHead = false;
  /** The end of the received message has arrived. */
  isEndReceived = false;
  /** Body bytes that are missing by content-length; -1 without one. */
  expectedBytes = -1;
  /** Received body bytes, and trailers, that wait until the reader resumes. */
  held: HeldBytes | undefined;
  heldTrailers: HeaderBlock | undefined;
  #isPaused = false;
  #isDelivering = false;

  begin(carrier: StreamCarrier, id: number, sendWindow: number, receiveWindow: number): void {
    this.carrier = carrier;
    this.id = id;
    this.isOpen = true;
    this.bytes.reset();
    this.sendWindow = sendWindow;
    this.hasSentHead = this.isEndQueued = this.isEndSent = this.isBlocked = this.isWaiting = false;
    this.isUpgrade = this.isConnect = this.isTunnel = this.isHalfClosed = this.isEndHeld = false;
    this.stuckBytes = -1;
    this.receiveWindow = receiveWindow;
    this.consumedBytes = 0;
    this.hasReceivedHead = this.isEndReceived = this.#isPaused = this.#isDelivering = false;
    this.expectedBytes = -1;
  }

  /** Releases everything that the stream holds. */
  release(): void {
    this.isOpen = false;
    this.decoder = undefined;
    this.head?.drop();
    this.head = undefined;
    this.queue?.clear();
    this.queue = undefined;
    this.queuedTrailers?.drop();
    this.queuedTrailers = undefined;
    this.held?.clear();
    this.held = undefined;
    this.heldTrailers?.drop();
    this.heldTrailers = undefined;
  }

  /** Called when the message that is sent is complete for the caller. */
  protected abstract onEndQueued(): void;

  // ── The encoder's methods ────────────────────────────────────────────────────────────────────────────────────────

  data(offset: number, length: number, endStream: boolean): void {
    if (!this.isOpen || this.isEndQueued || !this.hasSentHead) return;
    if (length === 0 && !endStream) return;
    if (endStream) {
      this.isEndQueued = true;
      this.onEndQueued();
    }
    this.carrier.sendBody(this, offset, length, endStream);
  }

  trailers(trailers: HeaderBlock): void {
    if (!this.isOpen || this.isEndQueued || !this.hasSentHead) return;
    this.isEndQueued = true;
    this.onEndQueued();
    this.carrier.sendTrailers(this, trailers);
  }

  reset(reason: ResetReason): void {
    if (this.isOpen) this.carrier.resetStream(this, errorCodeOf(reason));
  }

  pauseReading(): void {
    this.#isPaused = true;
  }

  resumeReading(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.deliverHeld();
  }

  // ── Delivery of the received body ────────────────────────────────────────────────────────────────────────────────

  /** Delivers body bytes, or holds them while the reader is paused. Returns false if there is no room for them. */
  receive(offset: number, length: number): boolean {
    const isLast = this.isEndReceived && this.heldTrailers === undefined;
    const { decoder } = this;
    if (decoder === undefined) {
      this.carrier.consumed(this, length);
      return true;
    }
    if (this.#mustHold) {
      this.held ??= this.carrier.newQueue();
      return length === 0 || this.held.append(offset, length);
    }
    if (length > 0) this.carrier.consumed(this, length);
    decoder.onData(offset, length, isLast);
    return true;
  }

  /** Delivers trailers after the body. Takes over `trailers`. Returns false if there is no room for them. */
  receiveTrailers(trailers: HeaderBlock): boolean {
    const { decoder } = this;
    if (decoder !== undefined && this.#mustHold) {
      this.held ??= this.carrier.newQueue();
      this.heldTrailers = trailers;
      return trailers.retain();
    }
    decoder?.onTrailers(trailers);
    trailers.drop();
    return true;
  }

  /** The body is for a tunnel that is not accepted yet. The other side could read it as another request. */
  protected get awaitsTunnel(): boolean {
    return false;
  }

  get #mustHold(): boolean {
    return this.#isPaused || this.held !== undefined || this.#isDelivering || this.awaitsTunnel;
  }

  /** Bytes of the arena that wait here. */
  get retainedBytes(): number {
    return (this.held?.retainedBytes ?? 0) + (this.queue?.retainedBytes ?? 0);
  }

  protected deliverHeld(): void {
    if (this.held === undefined || this.#isDelivering) return;
    this.#isDelivering = true;
    try {
      this.#deliverAll(this.held);
    } finally {
      this.#isDelivering = false;
    }
  }

  #deliverAll(held: HeldBytes): void {
    while (!this.#isPaused && !this.awaitsTunnel && this.isOpen) {
      if (held.isEmpty) {
        this.held = undefined;
        this.#deliverEnd(held);
        return;
      }
      const { start, end } = held.front;
      held.consume(end);
      const isLast = held.isEmpty && this.isEndReceived && this.heldTrailers === undefined;
      if (isLast) this.held = undefined;
      this.carrier.consumed(this, end - start);
      this.decoder?.onData(start, end - start, isLast);
      if (isLast) return this.carrier.settle(this);
    }
  }

  #deliverEnd(held: HeldBytes): void {
    if (!this.isEndReceived) return;
    const trailers = this.heldTrailers;
    this.heldTrailers = undefined;
    held.clear();
    if (trailers === undefined) this.decoder?.onData(0, 0, true);
    else {
      this.decoder?.onTrailers(trailers);
      trailers.drop();
    }
    this.carrier.settle(this);
  }
}
