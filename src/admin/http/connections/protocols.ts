// HTTP/1.1 and HTTP/2 on one port: a connection that begins with HTTP/2's preface uses HTTP/2 (prior knowledge, RFC 9113
// §3.3), all others HTTP/1.

import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { Http2Server, Http2ServerRequest, Http2ServerResponse, Http2Session } from 'node:http2';
import type { Socket } from 'node:net';
import { endBetweenSegments } from '../../../io/session-end.js';
import { endWhenStopped } from '../../../io/stopped-sessions.js';
import { inDomain } from '../../../log/internal-errors.js';
import type { AdminIncoming, AdminOutgoing } from '../messages/exchange.js';
import { DEFAULT_FIELDS } from '../messages/send-response.js';
import type { AdminConnection } from './admin-connection.js';

export interface ProtocolOptions {
  /** Maximum size of a request's head, including its first line. */
  readonly maxHeaderBytes: number;
  /** Time limits for the head of a request, and for the whole request. */
  readonly headTimeoutMs: number;
  readonly requestTimeoutMs: number;
  /** How long a connection without requests is kept; sent to clients. */
  readonly keepAliveMs: number;
  /** Interval of checks for HTTP/2 connections that have stopped because of malformed input. */
  readonly checkIntervalMs?: number | undefined;
  /** Takes a connection. Returns undefined for a connection that was refused and closed. */
  onConnection(socket: Socket): AdminConnection | undefined;
  /** Called when the protocol of the connection is known. */
  onProtocol(socket: Socket, isHttp2: boolean): void;
  onSession(socket: Socket, session: Http2Session): void;
  onRequest(request: AdminIncoming, response: AdminOutgoing, socket: Socket): void;
  /** Called for a request that was reset before onRequest. */
  onReset(socket: Socket): void;
  /** Called for received data that is not valid HTTP. */
  onProtocolError(): void;
  /** Called for a request that was answered here instead of by onRequest. */
  onRefused(socket: Socket, refusal: Refusal): void;
}

export interface Refusal {
  readonly status: number;
  readonly reason: string;
  /** %RESPONSE_CODE_DETAILS% */
  readonly details: string;
  /** As far as it is known. */
  readonly request?: IncomingMessage;
}

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
/** Per connection. */
const MAX_STREAMS = 100;
/** Limit of the heads and frames that Node keeps for a connection, in MB. */
const MAX_SESSION_MB = 4;
/** Invalid frames that a connection may send. */
const MAX_INVALID_FRAMES = 20;
/** Time for a refused client to end its side. */
const LINGER_MS = 1000;
/** Interval of checks for heads or requests that arrive too slowly. */
const LATE_CHECK_INTERVAL_MS = 2000;
/** Interval of checks for stopped HTTP/2 connections, which hold their descriptors even after their clients have disconnected. */
const STOPPED_CHECK_INTERVAL_MS = 250;

export class Protocols {
  /** The listening server, which handles HTTP/1 itself. */
  readonly server: Server;
  readonly #options: ProtocolOptions;
  readonly #http1: (socket: Socket) => void;
  /** Created for the first HTTP/2 client: loading it takes 10 ms and 2 MB. */
  #http2: Http2Server | undefined;
  readonly #sessions = new Map<Http2Session, Socket>();
  /** The connection whose session is being created. */
  #newSessionSocket: Socket | undefined;

  constructor(options: ProtocolOptions) {
    const { maxHeaderBytes, headTimeoutMs, requestTimeoutMs, keepAliveMs } = options;
    this.#options = options;
    this.server = createServer({
      maxHeaderSize: maxHeaderBytes,
      headersTimeout: headTimeoutMs,
      requestTimeout: requestTimeoutMs,
      connectionsCheckingInterval: LATE_CHECK_INTERVAL_MS,
      keepAliveTimeout: keepAliveMs,
      // Otherwise node:http would answer itself, without a notification.
      requireHostHeader: false,
    });
    // By default the server reads HTTP/1 from each connection; here only from connections that use it.
    this.#http1 = this.server.listeners('connection')[0] as (socket: Socket) => void;
    this.server.removeAllListeners('connection');
    this.server.on('connection', (socket: Socket) => {
      // Before it is accepted, nothing else could end it.
      inDomain({ name: 'admin connection', fail: () => void socket.destroy() }, () => {
        const connection = options.onConnection(socket);
        if (connection !== undefined) this.#detect(connection);
      });
    });
    this.server.on('request', (request, response) => options.onRequest(request, response, request.socket));
    // Expectations other than 100-continue need not be met (RFC 9110 §10.1.1).
    this.server.on('checkExpectation', (request, response) => options.onRequest(request, response, request.socket));
    this.server.on('connect', (request, socket) => {
      socket.on('error', () => {});
      this.#refuse(socket as Socket, { status: 403, reason: 'Forbidden', details: 'upgrade_failed', request });
    });
    this.server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
      // Bytes after refused ones are refused again.
      if (socket.writable && isProtocolError(error)) options.onProtocolError();
      this.#refuse(socket as Socket, refusalOf(error));
    });
  }

  /** Accepts no further requests: HTTP/2 connections end with their last answer. */
  closeWhenIdle(): void {
    for (const session of this.#sessions.keys()) session.close();
  }

  /** Waits for the first bytes of a connection and selects the protocol. */
  #detect(connection: AdminConnection): void {
    const { socket } = connection;
    let head: Buffer = Buffer.alloc(0);
    const cut = () => void socket.destroy();
    const onReadable = () => {
      const chunk = socket.read() as Buffer | null;
      // Also called at the end.
      if (chunk === null) return;
      head = head.length === 0 ? chunk : Buffer.concat([head, chunk]);
      const compared = Math.min(head.length, PREFACE.length);
      const isPreface = head.compare(PREFACE, 0, compared, 0, compared) === 0;
      if (isPreface && compared < PREFACE.length) return;
      socket.off('readable', onReadable);
      for (const event of ['end', 'error']) socket.off(event, cut);
      // All later work of Node for the connection starts from this call.
      inDomain(connection, () => {
        socket.unshift(head);
        this.#begin(socket, isPreface);
      });
    };
    for (const event of ['end', 'error']) socket.on(event, cut);
    socket.on('readable', onReadable);
  }

  #begin(socket: Socket, isHttp2: boolean): void {
    this.#options.onProtocol(socket, isHttp2);
    if (!isHttp2) {
      this.#http1.call(this.server, socket);
      return;
    }
    // The server allows HTTP/1 clients to half-close; a session would then outlive its client.
    socket.allowHalfOpen = false;
    this.#newSessionSocket = socket;
    this.#http2 ??= this.#createHttp2();
    this.#http2.emit('connection', socket);
    this.#newSessionSocket = undefined;
  }

  #refuse(socket: Socket, refusal: Refusal): void {
    if (!socket.writable) {
      socket.destroy();
      return;
    }
    this.#options.onRefused(socket, refusal);
    const date = new Date().toUTCString();
    const fields = Object.entries({ ...DEFAULT_FIELDS, date, connection: 'close', 'content-length': 0 });
    const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`).join('');
    socket.end(`HTTP/1.1 ${refusal.status} ${refusal.reason}\r\n${lines}\r\n`);
    linger(socket);
  }

  #createHttp2(): Http2Server {
    const { maxHeaderBytes } = this.#options;
    const server = process.getBuiltinModule('node:http2').createServer({
      maxHeaderListPairs: 256,
      maxSessionMemory: MAX_SESSION_MB,
      maxSessionInvalidFrames: MAX_INVALID_FRAMES,
      settings: { maxHeaderListSize: maxHeaderBytes, maxConcurrentStreams: MAX_STREAMS },
    });
    server.on('session', (session) => this.#follow(session));
    const serve = (request: Http2ServerRequest, response: Http2ServerResponse) => {
      const { session } = request.stream;
      const socket = session === undefined ? undefined : this.#sessions.get(session);
      if (socket !== undefined) this.#options.onRequest(request, response, socket);
    };
    server.on('request', serve);
    // By default Node sends this even if the client has already reset the stream, which throws.
    server.on('checkContinue', (request, response) => {
      if (request.stream.destroyed || request.stream.closed) return;
      response.writeContinue();
      serve(request, response);
    });
    server.on('checkExpectation', serve);
    return server;
  }

  #follow(session: Http2Session): void {
    const socket = this.#newSessionSocket!;
    endBetweenSegments(session);
    this.#sessions.set(session, socket);
    this.#options.onSession(socket, session);
    session.on('stream', (stream) => {
      // The segment with the request also contained its reset.
      if (stream.destroyed) this.#options.onReset(socket);
    });
    session.on('close', () => this.#sessions.delete(session));
    // The client broke the protocol or left: only its session ends.
    session.on('error', (error) => {
      if (isProtocolError(error)) this.#options.onProtocolError();
    });
    endWhenStopped(session, this.#options.checkIntervalMs ?? STOPPED_CHECK_INTERVAL_MS);
    if (!this.server.listening) session.close();
  }
}

/**
 * Discards what a client sends after its last answer until it ends its side, for a bounded time (RFC 9112 §9.6). Unread data
 * would hide the client's end, and the connection would hold its descriptor until the idle timeout.
 */
function linger(socket: Socket): void {
  socket.resume();
  const timer = setTimeout(() => socket.destroy(), LINGER_MS).unref();
  socket.once('close', () => clearTimeout(timer));
}

/** Returns whether the client broke the protocol, rather than left or was slow. */
function isProtocolError({ code = '' }: NodeJS.ErrnoException): boolean {
  return (code.startsWith('HPE_') && code !== 'HPE_INVALID_EOF_STATE') || code === 'ERR_HTTP2_ERROR';
}

/** Returns the answer that node:http sends for invalid input by default. */
function refusalOf({ code }: NodeJS.ErrnoException): Refusal {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return { status: 431, reason: 'Request Header Fields Too Large', details: 'http1.headers_too_large' };
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return { status: 408, reason: 'Request Timeout', details: 'request_header_timeout' };
    default:
      return { status: 400, reason: 'Bad Request', details: 'http1.codec_error' };
  }
}
