// The admin interface's HTTP server: connections in, answers out, nothing about what is answered.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { StringMatcher } from '../config/generated/api.js';
import type { Address } from '../io/address.js';
import { Level } from '../log/levels.js';
import { getLogger } from '../log/logger.js';
import type { AdminHandler } from './admin-handler.js';
import type { AdminServices } from './admin-services.js';
import { allowedPaths, type PathRule } from './allowed-paths.js';
import { answer } from './answer.js';
import { Connections } from './connections.js';
import { HandlerTable } from './handler-table.js';
import { HANDLERS } from './handlers/index.js';
import { type ListenTarget, listen } from './listen.js';
import { readBody } from './request-body.js';
import { sendResponse } from './send-response.js';

export interface AdminServerOptions {
  /** admin.allow_paths; absent or empty: every path is allowed. */
  readonly allowPaths?: readonly StringMatcher[];
  /** The endpoints; HANDLERS when left out. */
  readonly handlers?: readonly AdminHandler[];
  /** How long a client may take none of the bytes that wait for it. */
  readonly stallTimeoutMs?: number;
}

const logger = getLogger('admin');

/** As Envoy's HTTP layer: 60 KiB of headers, the request line among them. */
const MAX_HEADER_BYTES = 60 * 1024;
const MAX_BODY_BYTES = 1024 * 1024;
/** Time for a whole request to arrive. */
const REQUEST_TIMEOUT_MS = 60_000;
/** More than the usual scrape intervals, so that scrapers keep their connection. */
const KEEP_ALIVE_MS = 75_000;
const STALL_TIMEOUT_MS = 60_000;
const CLOSE_GRACE_MS = 1000;

export class AdminServer {
  readonly #services: AdminServices;
  readonly #handlers: HandlerTable;
  readonly #isAllowed: PathRule;
  readonly #stallTimeoutMs: number;
  readonly #server: Server;
  readonly #connections: Connections;
  #address: Address | undefined;
  #closed: Promise<void> | undefined;

  /** Throws BatonError for matchers of allowPaths that say nothing. */
  constructor(services: AdminServices, options: AdminServerOptions = {}) {
    this.#services = services;
    this.#handlers = new HandlerTable(options.handlers ?? HANDLERS);
    this.#isAllowed = allowedPaths(options.allowPaths ?? []);
    this.#stallTimeoutMs = options.stallTimeoutMs ?? STALL_TIMEOUT_MS;
    this.#server = createServer({
      maxHeaderSize: MAX_HEADER_BYTES,
      requestTimeout: REQUEST_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
    });
    this.#connections = new Connections(this.#server);
    this.#server.on('error', (error) => {
      // Before it listens, listen() rejects. Afterwards a connection could not be accepted: others will be.
      if (this.#server.listening) logger.error(`cannot accept an admin connection: ${error.message}`);
    });
    this.#server.on('request', (request, response) => void this.#serve(request, response));
  }

  /** Where it listens: port 0 has become a port. Undefined before listen(). */
  get address(): Address | undefined {
    return this.#address;
  }

  /**
   * Starts to listen on an address, or on a socket that somebody else has bound, and resolves with the address.
   * Rejects with a BatonError that says which address cannot be had, and why.
   */
  async listen(target: ListenTarget): Promise<Address> {
    this.#address = await listen(this.#server, target);
    return this.#address;
  }

  /** Stops listening, lets answers in flight go out for `graceMs`, then cuts what is left. May be called again. */
  close(graceMs = CLOSE_GRACE_MS): Promise<void> {
    this.#closed ??= this.#close(graceMs);
    return this.#closed;
  }

  async #close(graceMs: number): Promise<void> {
    if (!this.#server.listening) return;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#connections.closeWhenIdle();
    const timer = setTimeout(() => this.#server.closeAllConnections(), graceMs);
    await closed;
    clearTimeout(timer);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.#guard(response);
    let body: Buffer | undefined;
    try {
      body = await readBody(request, MAX_BODY_BYTES);
    } catch {
      // The client has left; there is nobody to tell.
      return;
    }
    const { method = 'GET', url: target = '/', headers } = request;
    const answered =
      body === undefined
        ? { status: 413, body: `The body is larger than ${MAX_BODY_BYTES} bytes.\n` }
        : await answer({ method, target, headers, body }, this.#handlers, this.#isAllowed, this.#services);
    if (this.#closed !== undefined) response.setHeader('connection', 'close');
    try {
      await sendResponse(response, answered, method === 'HEAD');
    } catch (error) {
      // A body that was cut short must not look complete.
      response.destroy();
      logger.exception(Level.Error, `the answer to "${target.slice(0, 200)}" was cut short`, error);
    }
  }

  /** Cuts a client that takes nothing of what waits for it. */
  #guard(response: ServerResponse): void {
    response.setTimeout(this.#stallTimeoutMs, () => {
      const { socket } = response;
      // Without bytes to take, the client is waiting too: a stream that is silent for a while.
      if (socket !== null && socket.writableLength > 0) socket.destroy();
    });
    // The client has left; sendResponse() learns it from 'close'.
    response.on('error', () => {});
  }
}
