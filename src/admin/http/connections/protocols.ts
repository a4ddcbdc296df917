// HTTP/1.1 and HTTP/2 on one port: a connection that begins with HTTP/2's preface is HTTP/2 (prior knowledge, RFC 9113
// §3.3), every other one HTTP/1.

import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { Http2Server, Http2Session } from 'node:http2';
import type { Socket } from 'node:net';
import { endWhenStopped } from '../../../io/stopped-sessions.js';
import type { AdminIncoming, AdminOutgoing } from '../messages/exchange.js';
import { USUAL_FIELDS } from '../messages/send-response.js';

export interface ProtocolOptions {
  /** Of a request, its first line included. */
  readonly maxHeaderBytes: number;
  /** Time for a whole request to arrive. */
  readonly requestTimeoutMs: number;
  /** How long a connection without requests is kept. */
  readonly keepAliveMs: number;
  /** How often is looked whether an HTTP/2 connection has stopped because of what came. */
  readonly lookMs?: number | undefined;
  /** Whether a connection may stay; one that may not is closed. */
  admits(socket: Socket): boolean;
  onConnection(socket: Socket): void;
  /** It is known which protocol the connection speaks. */
  onProtocol(socket: Socket, isHttp2: boolean): void;
  onRequest(request: AdminIncoming, response: AdminOutgoing, socket: Socket): void;
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
const MAX_STREAMS = 100;

export class Protocols {
  /** What listens; it knows HTTP/1 itself. */
  readonly server: Server;
  readonly #options: ProtocolOptions;
  readonly #http1: (socket: Socket) => void;
  /** Made for the first client that speaks it: loading it takes 10 ms and 2 MB. */
  #http2: Http2Server | undefined;
  readonly #sessions = new Map<Http2Session, Socket>();
  /** Connections that have not sent enough to tell. */
  readonly #undecided = new Set<Socket>();
  /** Whose session begins right now. */
  #beginning: Socket | undefined;

  constructor(options: ProtocolOptions) {
    const { maxHeaderBytes, requestTimeoutMs, keepAliveMs } = options;
    this.#options = options;
    this.server = createServer({
      maxHeaderSize: maxHeaderBytes,
      requestTimeout: requestTimeoutMs,
      keepAliveTimeout: keepAliveMs,
      // node:http would answer by itself, and nobody would hear of it.
      requireHostHeader: false,
    });
    // The server begins to read HTTP/1 at each connection: from now on only at those that are.
    this.#http1 = this.server.listeners('connection')[0] as (socket: Socket) => void;
    this.server.removeAllListeners('connection');
    this.server.on('connection', (socket: Socket) => this.#accept(socket));
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

  /** Cuts everything. */
  destroyAll(): void {
    for (const session of this.#sessions.keys()) session.destroy();
    this.server.closeAllConnections();
    for (const socket of this.#undecided) socket.destroy();
  }

  #accept(socket: Socket): void {
    if (!this.#options.admits(socket)) {
      socket.destroy();
      return;
    }
    this.#options.onConnection(socket);
    this.#undecided.add(socket);
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
      decided();
      socket.unshift(head);
      this.#begin(socket, isPreface);
    };
    const decided = () => {
      this.#undecided.delete(socket);
      socket.setTimeout(0);
      socket.off('readable', onReadable);
      for (const event of ['end', 'error', 'timeout']) socket.off(event, cut);
    };
    for (const event of ['end', 'error', 'timeout']) socket.on(event, cut);
    socket.on('close', () => this.#undecided.delete(socket));
    socket.setTimeout(this.#options.requestTimeoutMs);
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
  }

  #createHttp2(): Http2Server {
    const { maxHeaderBytes } = this.#options;
    const server = process.getBuiltinModule('node:http2').createServer({
      maxHeaderListPairs: 256,
      settings: { maxHeaderListSize: maxHeaderBytes, maxConcurrentStreams: MAX_STREAMS },
    });
    server.on('session', (session) => this.#follow(session));
    server.on('request', (request, response) => {
      const { session } = request.stream;
      const socket = session === undefined ? undefined : this.#sessions.get(session);
      if (socket !== undefined) this.#options.onRequest(request, response, socket);
    });
    return server;
  }

  #follow(session: Http2Session): void {
    this.#sessions.set(session, this.#beginning!);
    session.on('close', () => this.#sessions.delete(session));
    // A client that breaks the protocol, or leaves: its session is over, nothing else.
    session.on('error', (error) => {
      if (isProtocolError(error)) this.#options.onProtocolError();
    });
    session.setTimeout(this.#options.keepAliveMs, () => session.close());
    endWhenStopped(session, this.#options.lookMs);
    if (!this.server.listening) session.close();
  }
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
