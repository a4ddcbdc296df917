// The connection of a client: reads its commands, and sends the replies in their order.

import { type DownstreamConnection, type DownstreamHandler, getLogger } from '../../../sdk.js';
import { ClientSession } from './client-session.js';
import { Exchange, type ReplyOrder, UPSTREAM_FAILURE } from './exchange.js';
import type { RedisProxyContext } from './proxy-context.js';
import { HeldBytesError } from './resp/held-bytes.js';
import { type Command, RequestReader } from './resp/request-reader.js';
import { RespError } from './resp/resp-scanner.js';
import { errorReply } from './resp/write.js';
import { sendBytes } from './send-bytes.js';
import { RedisStats } from './stats.js';
import type { BlockedSender, HostClient } from './upstream/host-client.js';

const logger = getLogger('redis');

/** A client with more commands under way, or with more bytes of them, is not read. */
const MAX_PIPELINED = 1024;
const MAX_PIPELINED_BYTES = 1024 * 1024;

const WORD_BYTES = 64;

const PROTOCOL_ERROR = errorReply('downstream protocol error');

export class ClientConnection implements DownstreamHandler, ReplyOrder, BlockedSender {
  readonly #proxy: RedisProxyContext;
  readonly #downstream: DownstreamConnection;
  readonly #requests: RequestReader;
  readonly #session: ClientSession;
  /** In the order of the commands. Those before #next have their replies. */
  #exchanges: Exchange[] = [];
  #next = 0;
  /** Bytes of the commands without a reply. */
  #pendingBytes = 0;
  /** Hosts that accept its commands too slowly. */
  readonly #slowHosts = new Set<HostClient>();
  #isPaused = false;
  /** The client does not read its replies. */
  #isBlocked = false;
  #isLast = false;
  #isReading = false;
  #isOver = false;

  constructor(proxy: RedisProxyContext, downstream: DownstreamConnection) {
    this.#proxy = proxy;
    this.#downstream = downstream;
    this.#requests = new RequestReader(proxy.clientMemory);
    this.#session = new ClientSession(proxy);
    proxy.stats.proxy.increment(RedisStats.at.downstream_cx_total);
    proxy.stats.proxy.increment(RedisStats.at.downstream_cx_active);
  }

  get activeRequests(): number {
    return this.#exchanges.length - this.#next;
  }

  onConnected(): void {}

  onData(offset: number, length: number): void {
    if (this.#isOver) return;
    this.#proxy.stats.proxy.addBytes(RedisStats.at.downstream_cx_rx_bytes_total, length);
    if (this.#downstream.info !== undefined) this.#downstream.info.bytesReceived += length;
    if (this.#isLast) return;
    try {
      this.#requests.add(this.#proxy.memory.bytes, offset, length);
      this.#read();
      this.#requests.keep();
    } catch (error) {
      this.#refuse(error);
    }
  }

  onEnd(): void {
    this.#close();
  }

  onReset(): void {
    this.#close();
  }

  onListenerGone(): void {
    this.#close();
  }

  onBlocked(): void {
    this.#isBlocked = true;
    this.#pauseOrResume();
  }

  onDrained(): void {
    this.#isBlocked = false;
    this.#sendReplies();
    this.#continue();
  }

  onFault(): void {
    this.#end();
    this.#downstream.reset();
  }

  onFilterClose(): void {
    this.#end();
  }

  settled(exchange: Exchange): void {
    if (this.#isOver) return;
    // The caller of #read() gets what is thrown.
    if (this.#isReading) return this.#arrange(exchange);
    try {
      this.#arrange(exchange);
      this.#continue();
    } catch (error) {
      this.#fail(error);
    }
  }

  slowedBy(host: HostClient): void {
    this.#slowHosts.add(host);
    host.whenDrained(this);
  }

  hostDrained(host: HostClient): void {
    this.#slowHosts.delete(host);
    if (this.#isReading) return;
    try {
      this.#continue();
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Sends the reply of an exchange, or keeps it until earlier ones are sent and the client reads. */
  #arrange(exchange: Exchange): void {
    if (this.#isBlocked || this.#exchanges[this.#next] !== exchange) exchange.reply = exchange.hold(exchange.reply!);
    else this.#sendReplies();
  }

  /** Handles the commands that have arrived. */
  #read(): void {
    this.#isReading = true;
    try {
      while (!this.#isOver && !this.#isLast && !this.#mustPause()) {
        const command = this.#requests.next(this.#session.isAuthenticated);
        if (command === undefined) break;
        const exchange = new Exchange(this.#proxy, this, lengthOf(command));
        this.#pendingBytes += exchange.length;
        this.#exchanges.push(exchange);
        this.#proxy.stats.proxy.increment(RedisStats.at.downstream_rq_total);
        this.#proxy.stats.proxy.increment(RedisStats.at.downstream_rq_active);
        if (!exchange.reserve()) {
          exchange.settle(UPSTREAM_FAILURE);
          continue;
        }
        if (this.#session.handle(exchange, command)) continue;
        this.#isLast = true;
        this.#sendReplies();
      }
    } finally {
      this.#isReading = false;
    }
    this.#pauseOrResume();
  }

  #sendReplies(): void {
    const { memory, stats } = this.#proxy;
    for (;;) {
      const exchange = this.#exchanges[this.#next];
      if (exchange?.reply === undefined || exchange.isDelayed || this.#isOver || this.#isBlocked) break;
      this.#next++;
      this.#pendingBytes -= exchange.length;
      stats.proxy.decrement(RedisStats.at.downstream_rq_active);
      stats.proxy.addBytes(RedisStats.at.downstream_cx_tx_bytes_total, exchange.reply.length);
      if (this.#downstream.info !== undefined) this.#downstream.info.bytesSent += exchange.reply.length;
      sendBytes(memory, exchange.reply, this.#downstream);
      exchange.end();
    }
    if (this.#next === this.#exchanges.length) {
      this.#exchanges = [];
      this.#next = 0;
      this.#allReplied();
    } else if (this.#next > MAX_PIPELINED) {
      this.#exchanges = this.#exchanges.slice(this.#next);
      this.#next = 0;
    }
  }

  #allReplied(): void {
    if (this.#isOver) return;
    if (this.#isLast) return this.#close();
    const { clock, random, stats } = this.#proxy;
    if (!this.#downstream.drain.shouldClose(clock.monotonicMs, random)) return;
    stats.proxy.increment(RedisStats.at.downstream_cx_drain_close);
    this.#close();
  }

  #mustPause(): boolean {
    if (this.#isBlocked || this.#slowHosts.size > 0) return true;
    if (this.#exchanges[this.#exchanges.length - 1]?.isPartial === true) return true;
    return this.activeRequests >= MAX_PIPELINED || this.#pendingBytes >= MAX_PIPELINED_BYTES;
  }

  #pauseOrResume(): void {
    if (this.#isOver || this.#isPaused === this.#mustPause()) return;
    this.#isPaused = !this.#isPaused;
    if (this.#isPaused) this.#downstream.pause();
    else this.#downstream.resume();
  }

  /** Handles commands that have waited. */
  #continue(): void {
    if (this.#isOver || !this.#isPaused || this.#mustPause()) return;
    try {
      this.#read();
      this.#requests.keep();
    } catch (error) {
      this.#refuse(error);
    }
  }

  /** Ends a connection with bytes that are not of the protocol. */
  #refuse(error: unknown): void {
    if (!(error instanceof RespError) && !(error instanceof HeldBytesError)) throw error;
    this.#proxy.stats.proxy.increment(RedisStats.at.downstream_cx_protocol_error);
    sendBytes(this.#proxy.memory, PROTOCOL_ERROR, this.#downstream);
    this.#close();
  }

  /** Ends the connection after an exception in an event of a host, or of a timer, which other clients depend on. */
  #fail(error: unknown): void {
    this.onFault();
    logger.error({ err: error }, 'the connection of a client was reset after an exception');
  }

  #close(): void {
    this.#end();
    this.#downstream.close(0);
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { stats } = this.#proxy;
    stats.proxy.decrement(RedisStats.at.downstream_cx_active);
    for (const exchange of this.#exchanges.slice(this.#next)) {
      exchange.isAbandoned = true;
      exchange.end();
      stats.proxy.decrement(RedisStats.at.downstream_rq_active);
    }
    this.#exchanges = [];
    this.#next = 0;
    for (const host of this.#slowHosts) host.forget(this);
    this.#slowHosts.clear();
    this.#session.close();
    this.#requests.clear();
  }
}

/** Returns the bytes of a command, with those that its words take besides. */
function lengthOf(command: Command): number {
  let length = command.length * WORD_BYTES;
  for (const word of command) length += word.length;
  return length;
}
