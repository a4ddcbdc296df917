// HTTP/1.1 and HTTP/2 on one port: a connection that begins with HTTP/2's preface is HTTP/2 (prior knowledge, RFC 9113
// §3.3), every other one HTTP/1.

import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { Http2Server, Http2ServerRequest, Http2ServerResponse, Http2Session } from 'node:http2';
import type { Socket } from 'node:net';
import { endBetweenSegments } from '../../../io/session-end.js';
import { endWhenStopped } from '../../../io/stopped-sessions.js';
import { inDomain } from '../../../log/internal-errors.js';
import type { AdminIncoming, AdminOutgoing } from '../messages/exchange.js';
import { USUAL_FIELDS } from '../messages/send-response.js';
import type { AdminConnection } from './admin-connection.js';

export interface ProtocolOptions {
  /** Of a request, its first line included. */
  readonly maxHeaderBytes: number;
  /** Time for the head of a request to arrive, and for all of it. */
  readonly headTimeoutMs: number;
  readonly requestTimeoutMs: number;
  /** How long a connection without requests is kept, as clients are told. */
  readonly keepAliveMs: number;
  /** How often is looked whether an HTTP/2 connection has stopped because of what came. */
  readonly lookMs?: number | undefined;
  /** Takes a connection. Returns undefined for one that may not stay, which has been closed. */
  onConnection(socket: Socket): AdminConnection | undefined;
  /** It is known which protocol the connection speaks. */
  onProtocol(socket: Socket, isHttp2: boolean): void;
  onSession(socket: Socket, session: Http2Session): void;
  onRequest(request: AdminIncoming, response: AdminOutgoing, socket: Socket): void;
  /** A request was reset before it was one for onRequest. */
  onReset(socket: Socket): void;
  /** What a client sent is no HTTP. */
  onProtocolError(): void;
  /** A request got an answer here, before it was one for onRequest. */
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
/** Of a connection at a time. */
const MAX_STREAMS = 100;
/** What a connection may make Node keep of heads and frames, in MB. */
const MAX_SESSION_MB = 4;
/** Frames of a connection that break the protocol. */
const MAX_INVALID_FRAMES = 20;
/** How long a client that was refused may take to end its side. */
const LINGER_MS = 1000;
/** How often is looked whether a head or a request takes too long to arrive. */
const LOOK_FOR_LATE_MS = 2000;
/** How often is looked for HTTP/2 connections that have stopped: they hold their descriptors, also when their clients have gone. */
const LOOK_FOR_STOPPED_MS = 250;

export class Protocols {
  /** What listens; it knows HTTP/1 itself. */
  readonly server: Server;
  readonly #options: ProtocolOptions;
  readonly #http1: (socket: Socket) => void;
  /** Made for the first client that speaks it: loading it takes 10 ms and 2 MB. */
  #http2: Http2Server | undefined;
  readonly #sessions = new Map<Http2Session, Socket>();
  /** Whose session begins right now. */
  #beginning: Socket | undefined;

  constructor(options: ProtocolOptions) {
    const { maxHeaderBytes, headTimeoutMs, requestTimeoutMs, keepAliveMs } = options;
    this.#options = options;
    this.server = createServer({
      maxHeaderSize: maxHeaderBytes,
      headersTimeout: headTimeoutMs,
      requestTimeout: requestTimeoutMs,
      connectionsCheckingInterval: LOOK_FOR_LATE_MS,
      keepAliveTimeout: keepAliveMs,
      // node:http would answer by itself, and nobody would hear of it.
      requireHostHeader: false,
    });
    // The server begins to read HTTP/1 at each connection: from now on only at those that are.
    this.#http1 = this.server.listeners('connection')[0] as (socket: Socket) => void;
    this.server.removeAllListeners('connection');
    this.server.on('connection', (socket: Socket) => {
      // Until it is taken nobody else could end it.
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
      // What follows the bytes that were refused is refused again.
      if (socket.writable && isProtocolError(error)) options.onProtocolError();
      this.#refuse(socket as Socket, refusalOf(error));
    });
  }

  /** No further requests: HTTP/2 connections end with their last answer. */
  closeWhenIdle(): void {
    for (const session of this.#sessions.keys()) session.close();
  }

  /** Waits for the first bytes of a connection, and goes on as they say. */
  #detect(connection: AdminConnection): void {
    const { socket } = connection;
    let head: Buffer = Buffer.alloc(0);
    const cut = () => void socket.destroy();
    const onReadable = () => {
      const chunk = socket.read() as Buffer | null;
      // It is called at the end, too.
      if (chunk === null) return;
      head = head.length === 0 ? chunk : Buffer.concat([head, chunk]);
      const compared = Math.min(head.length, PREFACE.length);
      const isPreface = head.compare(PREFACE, 0, compared, 0, compared) === 0;
      if (isPreface && compared < PREFACE.length) return;
      socket.off('readable', onReadable);
      for (const event of ['end', 'error']) socket.off(event, cut);
      // Everything that Node does for the connection from here on comes of this call.
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
    // The server lets clients of HTTP/1 end their side first; a session would outlive its client so.
    socket.allowHalfOpen = false;
    this.#beginning = socket;
    this.#http2 ??= this.#createHttp2();
    this.#http2.emit('connection', socket);
    this.#beginning = undefined;
  }

  #refuse(socket: Socket, refusal: Refusal): void {
    if (!socket.writable) {
      socket.destroy();
      return;
    }
    this.#options.onRefused(socket, refusal);
    const date = new Date().toUTCString();
    const fields = Object.entries({ ...USUAL_FIELDS, date, connection: 'close', 'content-length': 0 });
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
    // Left to itself Node answers this even when the client has reset the stream by now, which throws.
    server.on('checkContinue', (request, response) => {
      if (request.stream.destroyed || request.stream.closed) return;
      response.writeContinue();
      serve(request, response);
    });
    server.on('checkExpectation', serve);
    return server;
  }

  #follow(session: Http2Session): void {
    const socket = this.#beginning!;
    endBetweenSegments(session);
    this.#sessions.set(session, socket);
    this.#options.onSession(socket, session);
    session.on('stream', (stream) => {
      // The segment that brought the request has reset it too.
      if (stream.destroyed) this.#options.onReset(socket);
    });
    session.on('close', () => this.#sessions.delete(session));
    // A client that breaks the protocol, or leaves: its session is over, nothing else.
    session.on('error', (error) => {
      if (isProtocolError(error)) this.#options.onProtocolError();
    });
    endWhenStopped(session, this.#options.lookMs ?? LOOK_FOR_STOPPED_MS);
    if (!this.server.listening) session.close();
  }
}

/**
 * Discards what a client still sends behind its last answer until it ends its side, for a bounded time (RFC 9112 §9.6). Left unread,
 * that would hide the client's end, and the connection would hold its descriptor until it has been idle for too long.
 */
function linger(socket: Socket): void {
  socket.resume();
  const timer = setTimeout(() => socket.destroy(), LINGER_MS).unref();
  socket.once('close', () => clearTimeout(timer));
}

/** Whether the client broke the protocol, rather than leave or take its time. */
function isProtocolError({ code = '' }: NodeJS.ErrnoException): boolean {
  return (code.startsWith('HPE_') && code !== 'HPE_INVALID_EOF_STATE') || code === 'ERR_HTTP2_ERROR';
}

/** As node:http answers what is no HTTP, when nobody else does. */
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
