// The transaction of one client. It has a connection of its own, to the host of its first key, which gets its commands as they are.

import { CommandKind } from '../commands.js';
import { type Exchange, NO_HOST, UPSTREAM_FAILURE } from '../exchange.js';
import type { RedisProxyContext } from '../proxy-context.js';
import { arrayReply, commandBytes, errorReply, statusReply, textCommand } from '../resp/write.js';
import type { HostClient, ReplyReceiver } from '../upstream/host-client.js';

const OK = statusReply('OK');
const NOTHING = arrayReply([]);
const NESTED = errorReply('MULTI calls can not be nested');
const WATCH_INSIDE = errorReply('ERR WATCH inside MULTI is not allowed');
const ABORTED = errorReply('EXECABORT Transaction discarded because of previous errors.');
const MULTI = textCommand('MULTI');
const IGNORED: ReplyReceiver = { replied() {}, failed() {} };

export class Transaction {
  readonly #proxy: RedisProxyContext;
  #connection: HostClient | undefined;
  /** Between MULTI and EXEC. */
  #isOpen = false;
  /** The connection has got MULTI. */
  #hasBegun = false;
  /** A command had no host. */
  #hasFailed = false;

  constructor(proxy: RedisProxyContext) {
    this.#proxy = proxy;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Handles MULTI, EXEC, DISCARD, WATCH and UNWATCH. */
  control(exchange: Exchange, name: string, words: readonly Buffer[]): void {
    switch (name) {
      case 'multi':
        if (this.#isOpen) return exchange.settle(NESTED);
        this.#isOpen = true;
        return exchange.settle(OK);
      case 'watch':
        if (this.#isOpen) return exchange.settle(WATCH_INSIDE);
        if (words.length < 2) return exchange.settle(errorReply(`wrong number of arguments for '${words[0]}' command`));
        return this.#send(exchange, words, words[1]!);
      case 'unwatch':
        if (this.#hasBegun) return this.#send(exchange, words, undefined);
        if (!this.#isOpen) this.close();
        return exchange.settle(OK);
      case 'exec':
        return this.#exec(exchange, words);
      default:
        if (!this.#isOpen) return exchange.settle(errorReply('DISCARD without MULTI'));
        this.close();
        return exchange.settle(OK);
    }
  }

  /** Handles another command between MULTI and EXEC. */
  queue(exchange: Exchange, kind: CommandKind, words: readonly Buffer[]): void {
    const isQueued =
      kind === CommandKind.Key ||
      kind === CommandKind.Sum ||
      kind === CommandKind.MultiGet ||
      kind === CommandKind.MultiSet;
    if (!isQueued) return exchange.settle(errorReply(`'${words[0]}' command is not supported within transaction`));
    this.#send(exchange, words, words[1]!, true);
  }

  /** Ends the transaction: the host discards what it has not executed. */
  close(): void {
    this.#isOpen = false;
    this.#hasBegun = this.#hasFailed = false;
    this.#connection?.close();
    this.#connection = undefined;
  }

  #exec(exchange: Exchange, words: readonly Buffer[]): void {
    if (!this.#isOpen) return exchange.settle(errorReply('EXEC without MULTI'));
    const connection = this.#connection;
    const hasBegun = this.#hasBegun;
    const reply = this.#hasFailed ? ABORTED : NOTHING;
    this.#isOpen = this.#hasBegun = this.#hasFailed = false;
    this.#connection = undefined;
    if (!hasBegun || reply === ABORTED) {
      connection?.close();
      return exchange.settle(reply);
    }
    if (!connection!.send(commandBytes(words), exchange)) return exchange.settle(ABORTED);
    connection!.drain();
  }

  #send(exchange: Exchange, words: readonly Buffer[], key: Buffer | undefined, begins = false): void {
    this.#connection ??= this.#connect(key);
    const connection = this.#connection;
    if (connection === undefined) {
      this.#hasFailed = this.#isOpen;
      return exchange.settle(NO_HOST);
    }
    if (begins && !this.#hasBegun) {
      connection.send(MULTI, IGNORED);
      this.#hasBegun = true;
    }
    if (!connection.send(commandBytes(words), exchange)) exchange.settle(UPSTREAM_FAILURE);
    else if (connection.isBlocked) exchange.slowedBy(connection);
  }

  #connect(key: Buffer | undefined): HostClient | undefined {
    const { hosts, routes } = this.#proxy;
    const cluster = hosts.clusterOf(routes.find(key ?? Buffer.alloc(0))?.cluster.current, key);
    const host = cluster && hosts.pick(cluster, key, false);
    return cluster && host && hosts.dedicated(cluster, host);
  }
}
