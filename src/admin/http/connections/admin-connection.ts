// One connection to the admin interface: the requests on it, and when each is answered.
//
// A client makes this server do what it likes by asking much and reading little. So a connection has a few answers made at a time,
// and its further requests wait in line, where they cost no more than their heads.

import { ServerResponse } from 'node:http';
import type { Http2Session } from 'node:http2';
import type { Socket } from 'node:net';
import type { FaultDomain } from '../../../log/internal-errors.js';
import { OwnTokenBucket, TokenRate } from '../../../upstream/token-bucket.js';
import { peerOf } from '../admin-exchange.js';
import { type AdminIncoming, type AdminOutgoing, pendingBytes } from '../messages/exchange.js';

/** Requests that wait for their answers: more than a browser has, by HTTP/2 too. */
const MAX_WAITING = 200;
/** Of the heads of these. */
const MAX_WAITING_BYTES = 512 * 1024;
/** Answers that are made at a time. Those of HTTP/1 go out one after the other. */
const HTTP1_ANSWERS = 1;
const HTTP2_ANSWERS = 8;
/** HTTP/2 requests that a client may reset before they are answered: as many at once, and as many a second. */
const RESETS = new TokenRate({ maxTokens: 100, tokensPerFill: 10, fillIntervalMs: 1000 });
/** HTTP/2's error code (RFC 9113 §7). */
const ENHANCE_YOUR_CALM = 11;

/** What happens to a connection. */
export interface ConnectionEvents {
  /** It has a complete request to answer. */
  busy(connection: AdminConnection): void;
  /** It has none any more. */
  idle(connection: AdminConnection): void;
}

export class AdminConnection implements FaultDomain {
  readonly name: string;
  readonly socket: Socket;
  readonly #events: ConnectionEvents;
  readonly #waiting = new Map<AdminOutgoing, number>();
  #waitingBytes = 0;
  /** Requests that are complete and not answered. */
  #complete = 0;
  #answers = 0;
  /** Requests whose turn has not come, the first one first. */
  readonly #line: (() => void)[] = [];
  readonly #resets = new OwnTokenBucket(RESETS);
  #session: Http2Session | undefined;
  /** Bytes that the client had taken when it was looked at last. */
  #takenBytes = -1;
  #endsWhenIdle = false;
  #isEnding = false;

  constructor(socket: Socket, events: ConnectionEvents) {
    const peer = peerOf(socket);
    this.name = peer === '' ? 'admin connection on a Unix socket' : `admin connection of ${peer}`;
    this.socket = socket;
    this.#events = events;
  }

  /** Set when it speaks HTTP/2. */
  set session(session: Http2Session) {
    this.#session = session;
  }

  /** It waits for no answer. */
  get isUnused(): boolean {
    return this.#waiting.size === 0;
  }

  /** Notes that the client waits for an answer. Returns false, with the connection ended, when it waits for too many. */
  wait(request: AdminIncoming, response: AdminOutgoing): boolean {
    if (this.#isEnding) return false;
    const bytes = headBytes(request);
    if (this.#waiting.size >= MAX_WAITING || this.#waitingBytes + bytes > MAX_WAITING_BYTES) {
      this.end();
      return false;
    }
    this.#waiting.set(response, bytes);
    this.#waitingBytes += bytes;
    response.on('close', () => {
      this.#waiting.delete(response);
      this.#waitingBytes -= bytes;
      if (this.#endsWhenIdle) this.endWhenIdle();
    });
    return true;
  }

  /** Resolves when the answer to a request may be made. Each call is followed by a call of turnOver(). */
  async turn(): Promise<void> {
    const most = this.#session === undefined ? HTTP1_ANSWERS : HTTP2_ANSWERS;
    if (this.#answers >= most) await new Promise<void>((resolve) => this.#line.push(resolve));
    else this.#answers++;
  }

  /** The answer has been made: the next one may be. */
  turnOver(): void {
    const next = this.#line.shift();
    if (next === undefined) this.#answers--;
    else next();
  }

  /** A request has come completely. Each call is followed by a call of answered(). */
  completed(): void {
    if (++this.#complete === 1) this.#events.busy(this);
  }

  answered(): void {
    if (--this.#complete === 0) this.#events.idle(this);
  }

  /** The client has reset a request before it was answered. Returns false, with the connection ended, when it does so too often. */
  wasReset(): boolean {
    if (this.#isEnding || this.#resets.take(performance.now())) return true;
    this.#isEnding = true;
    this.#session?.destroy(undefined, ENHANCE_YOUR_CALM);
    // Behind that, which waits until the segment has been read.
    setImmediate(() => this.end());
    return false;
  }

  /** Looks at it. Returns whether something waits for the client, and it has taken nothing since it was looked at last. */
  isStalled(): boolean {
    const { bytesWritten, writableLength } = this.socket;
    const before = this.#takenBytes;
    this.#takenBytes = bytesWritten - writableLength;
    if (this.#takenBytes !== before) return false;
    for (const response of this.#waiting.keys()) if (pendingBytes(response) > 0) return true;
    return false;
  }

  /** Ends it now if it waits for no answer, or else behind the last one. */
  endWhenIdle(): void {
    this.#endsWhenIdle = true;
    if (this.isUnused) this.socket.destroySoon();
  }

  /** Ends it, as far as its client is told so, when it has been idle for too long. */
  endIdle(): void {
    if (this.#session === undefined) this.socket.destroySoon();
    else this.#session.destroy();
  }

  /** Ends it, with whatever is under way. Its descriptor is free at once. */
  end(): void {
    this.#isEnding = true;
    this.#session?.destroy();
    this.socket.destroy();
  }

  fail(): void {
    this.end();
  }

  /**
   * Called when it has closed. node:http says nothing then to an answer behind another one on a pipelined connection, which would wait
   * for ever, with its body, for its turn.
   */
  closed(): void {
    for (const response of this.#waiting.keys()) {
      if (!(response instanceof ServerResponse) || response.socket !== null) continue;
      response.destroy();
      response.emit('close');
    }
  }
}

function headBytes({ rawHeaders, url = '' }: AdminIncoming): number {
  return rawHeaders.reduce((sum, text) => sum + text.length, url.length);
}
