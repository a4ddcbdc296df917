// One connection to the admin interface: its requests, and when each is answered.
//
// A client could cause much work by sending many requests and reading little. So only a few answers of a connection are
// produced at a time; further requests are queued, where they cost only their heads.

import { ServerResponse } from 'node:http';
import type { Http2Session } from 'node:http2';
import type { Socket } from 'node:net';
import type { FaultDomain } from '../../../log/internal-errors.js';
import { OwnTokenBucket, TokenRate } from '../../../upstream/token-bucket.js';
import { peerOf } from '../admin-exchange.js';
import { type AdminIncoming, type AdminOutgoing, pendingBytes } from '../messages/exchange.js';

/** Maximum number of unanswered requests: more than a browser sends, even by HTTP/2. */
const MAX_UNANSWERED = 200;
/** Maximum size of their heads. */
const MAX_UNANSWERED_BYTES = 512 * 1024;
/** Answers produced at a time. HTTP/1 sends them one after the other. */
const HTTP1_ANSWERS = 1;
const HTTP2_ANSWERS = 8;
/** HTTP/2 requests that a client may reset before they are answered: burst and rate per second. */
const RESETS = new TokenRate({ maxTokens: 100, tokensPerFill: 10, fillIntervalMs: 1000 });
/** Error code of HTTP/2 (RFC 9113 §7). */
const ENHANCE_YOUR_CALM = 11;

/** Callbacks of a connection. */
export interface ConnectionEvents {
  /** The connection has a complete request to answer. */
  busy(connection: AdminConnection): void;
  /** The connection has no such request any more. */
  idle(connection: AdminConnection): void;
}

export class AdminConnection implements FaultDomain {
  readonly name: string;
  readonly socket: Socket;
  readonly #events: ConnectionEvents;
  readonly #unanswered = new Map<AdminOutgoing, number>();
  #unansweredBytes = 0;
  /** Number of complete, unanswered requests. */
  #complete = 0;
  #answers = 0;
  /** Requests that wait for their turn, in order. */
  readonly #queue: (() => void)[] = [];
  readonly #resets = new OwnTokenBucket(RESETS);
  #session: Http2Session | undefined;
  /** Bytes that the client had read at the last check. */
  #readBytes = -1;
  #endsWhenIdle = false;
  #isEnding = false;
  /** Its client has sent no request yet. */
  isFresh = true;

  constructor(socket: Socket, events: ConnectionEvents) {
    const peer = peerOf(socket);
    this.name = peer === '' ? 'admin connection on a Unix socket' : `admin connection of ${peer}`;
    this.socket = socket;
    this.#events = events;
  }

  /** Set when the connection uses HTTP/2. */
  set session(session: Http2Session) {
    this.#session = session;
  }

  /** The connection has no unanswered request. */
  get isUnused(): boolean {
    return this.#unanswered.size === 0;
  }

  /** Adds an unanswered request. Returns false, with the connection ended, if there are too many. */
  enqueue(request: AdminIncoming, response: AdminOutgoing): boolean {
    if (this.#isEnding) return false;
    this.isFresh = false;
    const bytes = headBytes(request);
    if (this.#unanswered.size >= MAX_UNANSWERED || this.#unansweredBytes + bytes > MAX_UNANSWERED_BYTES) {
      this.end();
      return false;
    }
    this.#unanswered.set(response, bytes);
    this.#unansweredBytes += bytes;
    response.on('close', () => {
      this.#unanswered.delete(response);
      this.#unansweredBytes -= bytes;
      if (this.#endsWhenIdle) this.endWhenIdle();
    });
    return true;
  }

  /** Resolves when the answer to a request may be produced. Every call must be followed by releaseTurn(). */
  async acquireTurn(): Promise<void> {
    const maxAnswers = this.#session === undefined ? HTTP1_ANSWERS : HTTP2_ANSWERS;
    if (this.#answers >= maxAnswers) await new Promise<void>((resolve) => this.#queue.push(resolve));
    else this.#answers++;
  }

  /** Called when the answer was produced: the next one may be. */
  releaseTurn(): void {
    const next = this.#queue.shift();
    if (next === undefined) this.#answers--;
    else next();
  }

  /** Called when a request was received completely. Every call must be followed by answered(). */
  completed(): void {
    if (++this.#complete === 1) this.#events.busy(this);
  }

  answered(): void {
    if (--this.#complete === 0) this.#events.idle(this);
  }

  /**
   * Called when the client has reset an unanswered request. Returns false, with the connection ended, if this happens too
   * often.
   */
  wasReset(): boolean {
    if (this.#isEnding || this.#resets.take(performance.now())) return true;
    this.#isEnding = true;
    this.#session?.destroy(undefined, ENHANCE_YOUR_CALM);
    // After the session has ended, which waits until the segment was read.
    setImmediate(() => this.end());
    return false;
  }

  /** Returns whether bytes wait for the client, and it has read nothing since the last check. */
  isStalled(): boolean {
    const { bytesWritten, writableLength } = this.socket;
    const before = this.#readBytes;
    this.#readBytes = bytesWritten - writableLength;
    if (this.#readBytes !== before) return false;
    for (const response of this.#unanswered.keys()) if (pendingBytes(response) > 0) return true;
    return false;
  }

  /** Ends the connection after its last answer, or now if there is none. */
  endWhenIdle(): void {
    this.#endsWhenIdle = true;
    if (this.isUnused) this.socket.destroySoon();
  }

  /** Ends a connection that was idle for too long, with the protocol's notification to the client. */
  endIdle(): void {
    if (this.#session === undefined) this.socket.destroySoon();
    else this.#session.destroy();
  }

  /** Ends the connection with all requests. Its descriptor is freed immediately. */
  end(): void {
    this.#isEnding = true;
    this.#session?.destroy();
    this.socket.destroy();
  }

  fail(): void {
    this.end();
  }

  /**
   * Called when the connection has closed. node:http then does not notify answers that are queued behind another one on a
   * pipelined connection: these would wait forever, with their bodies.
   */
  closed(): void {
    for (const response of this.#unanswered.keys()) {
      if (!(response instanceof ServerResponse) || response.socket !== null) continue;
      response.destroy();
      response.emit('close');
    }
  }
}

function headBytes({ rawHeaders, url = '' }: AdminIncoming): number {
  return rawHeaders.reduce((sum, text) => sum + text.length, url.length);
}
