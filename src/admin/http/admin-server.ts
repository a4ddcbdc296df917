// The admin interface's HTTP server: accepts connections and sends answers, independent of their content.

import { Server as NetServer, type Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { Protocol } from '../../access-log/stream/stream-info.js';
import { isDescriptorShortage } from '../../common/errors/shortages.js';
import { atMostMs } from '../../common/time/within-ms.js';
import type { StringMatcher } from '../../config/generated/api.js';
import { type Address, addressText } from '../../io/addresses/address.js';
import { failDomain, forEachGuarded, outsideDomains } from '../../log/internal-errors.js';
import { getLogger } from '../../log/logger.js';
import type { AdminHandler, AdminResponse } from '../admin-handler.js';
import type { AdminServices } from '../admin-services.js';
import { HandlerTable } from '../handler-table.js';
import { HANDLERS } from '../handlers/index.js';
import { EndingError, LostSlotError } from '../render/body-slots.js';
import { Exchange, fieldsOf, peerOf } from './admin-exchange.js';
import { allowedPaths } from './allowed-paths.js';
import { type AccessRules, answer } from './answer.js';
import type { AdminConnection } from './connections/admin-connection.js';
import type { AdminTraffic } from './connections/admin-traffic.js';
import { Connections } from './connections/connections.js';
import { type ListenTarget, listen } from './connections/listen.js';
import { Protocols, type Refusal } from './connections/protocols.js';
import { type AdminIncoming, type AdminOutgoing, cut, cutWhenStalled, isGone, setHeader } from './messages/exchange.js';
import { ByteBudget, ReceivedBody } from './messages/request-body.js';
import { DEFAULT_FIELDS, sendResponse } from './messages/send-response.js';
import { allowedHosts, hostFault } from './request-guards.js';
import type { RequestLog } from './request-log.js';
import { postponeForAccepts } from './turns.js';

/** A limit of the number of connections. */
export interface SharedLimit {
  /** Returns whether one more is allowed; it counts until release(). */
  tryAcquire(): boolean;
  release(): void;
}

export interface AdminServerOptions {
  /** admin.allow_paths; absent or empty: all paths are allowed. */
  readonly allowPaths?: readonly StringMatcher[];
  /** --admin-allowed-hosts; absent or empty: all hosts are allowed. */
  readonly allowedHosts?: readonly string[];
  /** --admin-max-connections; default: 128. */
  readonly maxConnections?: number;
  /** An additional limit of connections, shared with other listeners. */
  readonly connectionLimit?: SharedLimit;
  /** Counts connections and requests. */
  readonly traffic?: AdminTraffic;
  /** admin.access_log */
  readonly requestLog?: RequestLog;
  /** The endpoints; default: HANDLERS. */
  readonly handlers?: readonly AdminHandler[];
  /** Maximum idle time of a connection. */
  readonly idleMs?: number;
  /** Maximum time in which a client reads none of the bytes that wait for it. */
  readonly stallTimeoutMs?: number;
  /** Interval of checks for HTTP/2 connections that have stopped because of malformed input. */
  readonly checkIntervalMs?: number;
}

const logger = getLogger('admin');

/** As in Envoy's HTTP layer: 60 KiB of headers, including the request line. */
const MAX_HEADER_BYTES = 60 * 1024;
const MAX_BODY_BYTES = 1024 * 1024;
/** Time limits for the head of a request, and for the whole request. */
const HEAD_TIMEOUT_MS = 15_000;
const REQUEST_TIMEOUT_MS = 60_000;
/** Longer than common scrape intervals, so that scrapers keep their connections. */
const KEEP_ALIVE_MS = 75_000;
const STALL_TIMEOUT_MS = 60_000;
const CLOSE_GRACE_MS = 1000;
/** A client that has connected sends its request at once, unless its machine is busy. */
const FIRST_REQUEST_MS = 250;
/** The default of --admin-max-connections. */
const MAX_CONNECTIONS = 128;
/** Limit of all buffered request bodies together. */
const MAX_BODIES_BYTES = 16 * 1024 * 1024;

export class AdminServer {
  /** The served endpoints; those of some configurations are added and removed. */
  readonly handlers: HandlerTable;
  readonly #services: AdminServices;
  readonly #rules: AccessRules;
  readonly #stallTimeoutMs: number;
  readonly #connectionLimit: SharedLimit | undefined;
  readonly #traffic: AdminTraffic | undefined;
  readonly #requestLog: RequestLog | undefined;
  readonly #protocols: Protocols;
  readonly #connections: Connections;
  readonly #bodies = new ByteBudget(MAX_BODIES_BYTES);
  readonly #unanswered = new Set<Exchange>();
  #allAnswered = () => {};
  #address: Address | undefined;
  #closed: Promise<void> | undefined;
  #isReplaced = false;

  /** Throws a BatonError for empty matchers in allowPaths. */
  constructor(services: AdminServices, options: AdminServerOptions = {}) {
    this.#services = services;
    this.handlers = new HandlerTable(options.handlers ?? HANDLERS);
    this.#rules = {
      isAllowedPath: allowedPaths(options.allowPaths ?? []),
      isAllowedHost: allowedHosts(options.allowedHosts ?? []),
    };
    this.#stallTimeoutMs = options.stallTimeoutMs ?? STALL_TIMEOUT_MS;
    this.#connectionLimit = options.connectionLimit;
    this.#traffic = options.traffic;
    this.#requestLog = options.requestLog;
    const idleMs = options.idleMs ?? KEEP_ALIVE_MS;
    this.#connections = new Connections({
      max: options.maxConnections ?? MAX_CONNECTIONS,
      idleMs,
      onEvicted: () => this.#traffic?.evicted(),
      onRefused: () => this.#traffic?.refused(),
      onIdleTimeout: () => this.#traffic?.idleTimedOut(),
    });
    this.#protocols = new Protocols({
      maxHeaderBytes: MAX_HEADER_BYTES,
      headTimeoutMs: HEAD_TIMEOUT_MS,
      requestTimeoutMs: REQUEST_TIMEOUT_MS,
      keepAliveMs: idleMs,
      checkIntervalMs: options.checkIntervalMs,
      onConnection: (socket) => this.#accept(socket),
      onProtocol: (socket, isHttp2) => this.#traffic?.protocolDetected(socket, isHttp2),
      onSession: (socket, session) => {
        const connection = this.#connections.find(socket);
        if (connection !== undefined) connection.session = session;
      },
      // Work that a request begins may outlive its connection.
      onRequest: (request, response, socket) => outsideDomains(() => this.#begin(request, response, socket)),
      onReset: (socket) => this.#wasReset(this.#connections.find(socket)),
      onProtocolError: () => this.#traffic?.protocolError(),
      onRefused: (socket, refusal) => this.#refused(socket, refusal),
    });
    const { server } = this.#protocols;
    server.on('error', (error) => {
      // Before the server listens, listen() rejects. Later, a connection could not be accepted, and others will be.
      if (!server.listening) return;
      const hasEvicted = isDescriptorShortage(error) && this.#connections.evict();
      const remedy = hasEvicted ? '; an idle one was closed to make room' : '';
      logger.error(`cannot accept an admin connection: ${error.message}${remedy}`);
    });
  }

  /** The bound address; port 0 is replaced by the actual port. Undefined before listen(). */
  get address(): Address | undefined {
    return this.#address;
  }

  /** There are requests whose answers are finite and not complete. */
  get isAnswering(): boolean {
    return this.#unanswered.size > 0;
  }

  /**
   * Listens on an address, or on a socket that was bound before, and resolves with the address. Rejects with a BatonError
   * that contains the address and the reason; rejects also if close() was called meanwhile.
   */
  async listen(target: ListenTarget): Promise<Address> {
    this.#isReplaced = false;
    this.#connections.keepIdle();
    this.#address = await listen(this.#protocols.server, target);
    if (this.#closed === undefined) return this.#address;
    // close() had nothing to close yet.
    await this.#close(0);
    throw new Error('the admin interface has been closed');
  }

  /**
   * Stops accepting, because another process accepts now, and closes connections without requests. Those that were accepted just before
   * have a moment for their first one. Resolves when all answers are complete, or after `graceMs`; remaining answers continue.
   */
  async stopListening(graceMs = CLOSE_GRACE_MS): Promise<void> {
    this.#isReplaced = true;
    const { server } = this.#protocols;
    // node:http's own close() also closes connections that wait for a request.
    if (server.listening) NetServer.prototype.close.call(server);
    this.#protocols.closeWhenIdle();
    // Requests that the kernel has received by now are answered: the loop reads them before its second turn ends.
    for (let turns = 0; turns < 2; turns++) await setImmediate();
    await this.#connections.awaitFirstRequests(FIRST_REQUEST_MS);
    if (!this.#isReplaced) return;
    this.#connections.closeWhenIdle();
    if (this.isAnswering) await atMostMs(new Promise<void>((resolve) => (this.#allAnswered = resolve)), graceMs);
  }

  /** Stops listening, completes answers in flight for `graceMs`, then cuts the rest. May be called again. */
  close(graceMs = CLOSE_GRACE_MS): Promise<void> {
    this.#closed ??= this.#close(graceMs);
    return this.#closed;
  }

  async #close(graceMs: number): Promise<void> {
    const { server } = this.#protocols;
    if (!server.listening && !this.#isReplaced) return;
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    this.#protocols.closeWhenIdle();
    this.#connections.closeWhenIdle();
    const timer = setTimeout(() => this.#connections.endAll(), graceMs);
    await closed;
    clearTimeout(timer);
    await this.#services.renders.close();
  }

  /** Takes a connection. Returns undefined, with the connection closed, if there is no room for it. */
  #accept(socket: Socket): AdminConnection | undefined {
    postponeForAccepts();
    const connection = this.#connections.add(socket);
    if (connection === undefined) return undefined;
    let isCounted = false;
    socket.on('close', (hadError) => {
      const byPeer = hadError || socket.readableEnded;
      const steps = [
        () => this.#connections.closed(connection, byPeer),
        () => this.#traffic?.closed(socket, byPeer),
        () => isCounted && this.#connectionLimit!.release(),
      ];
      forEachGuarded(steps, 'internal error: the end of an admin connection is not recorded', (step) => step());
    });
    if (this.#connectionLimit !== undefined) {
      isCounted = this.#connectionLimit.tryAcquire();
      if (!isCounted) {
        this.#traffic?.overflowed();
        connection.end();
        return undefined;
      }
    }
    this.#traffic?.connected(socket);
    return connection;
  }

  /** Called when the head of a request was received; its body may be incomplete. */
  #begin(request: AdminIncoming, response: AdminOutgoing, socket: Socket): void {
    // The client has disconnected; sendResponse() is notified by 'close'.
    response.on('error', () => {});
    const connection = this.#connections.find(socket);
    // The connection was closed to make room, or has too many requests.
    if (connection === undefined || !connection.enqueue(request, response)) return;
    const exchange = new Exchange(request, response, socket);
    this.#traffic?.requestBegan(socket);
    this.#unanswered.add(exchange);
    cutWhenStalled(response, this.#stallTimeoutMs);
    this.#serve(exchange, connection).catch((error: unknown) => failDomain(connection, error));
  }

  async #serve(exchange: Exchange, connection: AdminConnection): Promise<void> {
    try {
      await connection.acquireTurn();
      try {
        await this.#receive(exchange, connection);
      } finally {
        connection.releaseTurn();
      }
    } finally {
      this.#markAnswered(exchange);
      this.#ended(exchange);
    }
    if (exchange.wasReset) this.#wasReset(connection);
  }

  #wasReset(connection: AdminConnection | undefined): void {
    if (connection?.wasReset() === false) this.#traffic?.resetTooOften();
  }

  /** Reads the whole request, then answers it. */
  async #receive(exchange: Exchange, connection: AdminConnection): Promise<void> {
    const { request, response } = exchange;
    // The client may have left or reset the request before its turn; no further event follows then.
    if (isGone(response)) return;
    const body = new ReceivedBody(this.#bodies, MAX_BODY_BYTES);
    try {
      if (!(await body.read(request))) return;
      exchange.received(body.bytes);
      connection.completed();
      try {
        await this.#answer(exchange, body);
      } finally {
        connection.answered();
      }
    } finally {
      body.release();
    }
  }

  async #answer(exchange: Exchange, { bytes, refusal }: ReceivedBody): Promise<void> {
    const { response, method, target, headers, peer } = exchange;
    const fault = hostFault(exchange.request);
    let answered: AdminResponse | undefined;
    if (bytes === undefined) {
      answered = refusal;
    } else if (fault !== undefined) {
      exchange.details = fault.details;
      answered = { status: 400, headers: { connection: 'close' }, body: fault.text };
    } else if (exchange.hasBadPath) {
      exchange.details = 'path_normalization_failed';
      answered = { status: 400, headers: { connection: 'close' }, body: '' };
    } else {
      const raw = { method, target, headers, body: bytes, peer, isGone: () => isGone(response) };
      answered = await answer(raw, this.handlers, this.#rules, this.#services);
    }
    if (answered === undefined) return;
    if (this.#closed !== undefined || this.#isReplaced) setHeader(response, 'connection', 'close');
    if (answered.isEndless) this.#markAnswered(exchange);
    exchange.status = answered.status ?? 200;
    try {
      exchange.bytesSent = await sendResponse(response, answered, method === 'HEAD');
    } catch (error) {
      // A body that was cut off must not look complete.
      cut(response);
      if (error instanceof LostSlotError || error instanceof EndingError) return;
      logger.error({ err: error }, `the answer to "${target.slice(0, 200)}" was cut short`);
    }
  }

  /** Called when the answer is complete, or has no end that can be awaited. */
  #markAnswered(exchange: Exchange): void {
    this.#unanswered.delete(exchange);
    if (!this.isAnswering) this.#allAnswered();
  }

  #ended(exchange: Exchange): void {
    const endMs = performance.now();
    const { socket, status, startMs } = exchange;
    this.#traffic?.requestEnded(socket, status, endMs - startMs);
    this.#requestLog?.log({
      ...exchange,
      requestHeaders: exchange.fields,
      responseHeaders: exchange.response.getHeaders(),
      localAddress: this.#localAddress,
      endMs,
      isCut: exchange.isCut,
    });
  }

  /** Called when Node or the protocol layer has answered a request itself. It is counted and logged nevertheless. */
  #refused(socket: Socket, { status, details, request }: Refusal): void {
    // This is the end of a request that is already tracked and logged at its end.
    if (this.#connections.find(socket)?.isUnused === false) return;
    if (status === 408) this.#traffic?.headTimedOut();
    this.#traffic?.requestBegan(socket);
    this.#traffic?.requestEnded(socket, status, 0);
    const nowMs = performance.now();
    this.#requestLog?.log({
      method: request?.method ?? '',
      target: request?.url ?? '',
      protocol: request?.httpVersionMinor === 0 ? Protocol.Http10 : Protocol.Http11,
      requestHeaders: request === undefined ? {} : fieldsOf(request),
      responseHeaders: DEFAULT_FIELDS,
      status,
      details,
      bytesReceived: 0,
      bytesSent: 0,
      isCut: false,
      peer: peerOf(socket),
      localAddress: this.#localAddress,
      startRealtimeMs: Date.now(),
      startMs: nowMs,
      receivedMs: nowMs,
      endMs: nowMs,
    });
  }

  get #localAddress(): string {
    return this.#address === undefined ? '' : addressText(this.#address);
  }
}
