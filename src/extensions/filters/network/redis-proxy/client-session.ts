// What one client may do, and which part of the proxy handles each of its commands.

import type { RunningCall } from '../../../sdk.js';
import { CommandKind, needsArgument } from './commands.js';
import type { Exchange } from './exchange.js';
import { GREETING_2, GREETING_3, INVALID, ownReply } from './own-commands.js';
import type { RedisProxyContext } from './proxy-context.js';
import { sendMultiGet, sendMultiSet, sendScan, sendSum, sendToAllHosts } from './requests/several-hosts.js';
import { sendByKey, sendToAny } from './requests/single-command.js';
import { Transaction } from './requests/transaction.js';
import type { Command } from './resp/request-reader.js';
import { errorReply, statusReply } from './resp/write.js';
import { RedisStats, SplitterStats } from './stats.js';

const OK = statusReply('OK');
const NO_AUTH = errorReply('NOAUTH Authentication required.');
const WRONG_PAIR = errorReply('WRONGPASS invalid username-password pair');
const NO_PAIR = errorReply('ERR Client sent AUTH, but no username-password pair is set');
const NO_PASSWORD = errorReply('ERR Client sent AUTH, but no password is set');
const WRONG_PASSWORD = errorReply('ERR invalid password');
const NO_PROTOCOL = errorReply('NOPROTO unsupported protocol version');
/** What a cluster tells about itself, without changing it. */
const CLUSTER_READS: readonly string[] = ['info', 'keyslot', 'nodes', 'shards', 'slots'];

interface Pair {
  readonly username: Buffer;
  readonly password: Buffer;
}

const NO_NAME = Buffer.alloc(0);

export class ClientSession {
  readonly #proxy: RedisProxyContext;
  readonly #transaction: Transaction;
  /** The client may send every command. */
  isAuthenticated: boolean;
  /** The client has sent the HELLO 3 that RESP3 begins with. */
  #hasGreeted: boolean;
  /** Wall-clock milliseconds at which the service's permission ends. */
  #untilMs = Number.POSITIVE_INFINITY;
  /** The question about the client. */
  #call: RunningCall | undefined;

  constructor(proxy: RedisProxyContext) {
    this.#proxy = proxy;
    this.#transaction = new Transaction(proxy);
    this.isAuthenticated = !proxy.credentials.areRequired && proxy.externalAuth === undefined;
    this.#hasGreeted = !proxy.usesResp3;
  }

  close(): void {
    this.#call?.cancel();
    this.#transaction.close();
  }

  /** Handles a command. Returns false if it is the last one of the client. */
  handle(exchange: Exchange, words: Command): boolean {
    if (words.length === 0) return this.#invalid(exchange);
    if (this.#untilMs <= this.#proxy.clock.realtimeMs) this.isAuthenticated = false;
    const name = words[0]!.toString('latin1').toLowerCase();
    if (name === 'quit') {
      exchange.settle(OK);
      return false;
    }
    if (!this.#hasGreeted && name !== 'hello' && name !== 'auth') {
      this.#proxy.stats.proxy.increment(RedisStats.at.downstream_rq_noproto);
      exchange.settle(NO_PROTOCOL);
      return true;
    }
    const kind = this.#proxy.kinds.get(name);
    if (kind === undefined) return this.#unknown(exchange, words);
    if (words.length < 2 && needsArgument(name)) return this.#invalid(exchange);
    if (name === 'auth') this.#authenticate(exchange, words);
    else if (name === 'hello') this.#hello(exchange, words);
    else if (!this.isAuthenticated) exchange.settle(NO_AUTH);
    else if (kind === CommandKind.Own) this.#own(exchange, name, words);
    else if (exchange.begin(name)) this.#dispatch(exchange, kind, name, words);
    return true;
  }

  #own(exchange: Exchange, name: string, words: Command): void {
    const reply = ownReply(exchange, name, words);
    if (reply === INVALID) this.#invalid(exchange);
    else exchange.settle(reply);
  }

  #dispatch(exchange: Exchange, kind: CommandKind, name: string, words: Command): void {
    if (kind === CommandKind.Transaction) return this.#transaction.control(exchange, name, words);
    if (this.#transaction.isOpen) return this.#transaction.queue(exchange, kind, words);
    switch (kind) {
      case CommandKind.Script:
        if (words.length < 4) return this.#wrongCount(exchange, words);
        return sendByKey(exchange, words, 3);
      case CommandKind.Object:
        if (words.length < 3) return this.#wrongCount(exchange, words);
        return sendByKey(exchange, words, 2);
      case CommandKind.Sum:
        return sendSum(exchange, words);
      case CommandKind.MultiGet:
        return sendMultiGet(exchange, words);
      case CommandKind.MultiSet:
        if (words.length % 2 === 0) return this.#wrongCount(exchange, words);
        return sendMultiSet(exchange, words);
      case CommandKind.Scan:
        if (words.length < 2) return exchange.settle(errorReply(`ERR ${wrongCount(words)}`));
        return sendScan(exchange, words);
      case CommandKind.AllHosts:
        return sendToAllHosts(exchange, name, words);
      case CommandKind.AnyHost:
        return this.#any(exchange, name, words);
      default:
        return sendByKey(exchange, words, 1);
    }
  }

  #any(exchange: Exchange, name: string, words: Command): void {
    const subcommand = words[1]?.toString('latin1').toLowerCase() ?? '';
    if (name !== 'cluster' || CLUSTER_READS.includes(subcommand)) return sendToAny(exchange, words);
    exchange.settle(errorReply(`ERR cluster subcommand '${subcommand}' is not supported`));
  }

  #hello(exchange: Exchange, words: Command): void {
    if (!exchange.begin('hello')) return;
    const { usesResp3 } = this.#proxy;
    const version = words[1]?.toString('latin1');
    const isOther = version === undefined ? !this.#hasGreeted : version !== (usesResp3 ? '3' : '2');
    if (isOther) return exchange.settle(NO_PROTOCOL);
    const options = this.#helloOptions(words);
    if (options instanceof Uint8Array) return exchange.settle(options);
    if (options === undefined || this.#proxy.externalAuth === undefined) return this.#greet(exchange);
    this.#ask(exchange, options, 'WRONGPASS', () => this.#greet(exchange));
  }

  /** Reads the options of HELLO. Returns an error, or the credentials; undefined: there are none. */
  #helloOptions(words: Command): Buffer | Pair | undefined {
    let pair: Pair | undefined;
    for (let at = 2; at < words.length; at++) {
      const option = words[at]!.toString('latin1', 0, MAX_SHOWN);
      const left = words.length - at - 1;
      if (option.toLowerCase() === 'auth') {
        if (left < 2) return errorReply('ERR Syntax error: HELLO AUTH requires <username> <password>');
        pair = { username: words[++at]!, password: words[++at]! };
        if (this.#proxy.externalAuth !== undefined) continue;
        const reply = this.#pair(pair);
        if (reply !== OK) return reply;
      } else if (option.toLowerCase() === 'setname') {
        if (left < 1) return errorReply('ERR Syntax error: HELLO SETNAME requires <clientname>');
        at++;
      } else return errorReply(`ERR Syntax error: unknown HELLO option '${option}'`);
    }
    return pair;
  }

  #greet(exchange: Exchange): void {
    if (!this.isAuthenticated) return exchange.settle(NO_AUTH);
    this.#hasGreeted = true;
    exchange.settle(this.#proxy.usesResp3 ? GREETING_3 : GREETING_2);
  }

  /** Asks the service about the client. The next commands wait. `code`: what the error of a refused client begins with. */
  #ask(exchange: Exchange, { password, username }: Pair, code: string, allowed: () => void): void {
    exchange.isPartial = true;
    const call = this.#proxy.externalAuth!.ask(username, password, code, ({ refusal, untilMs }) => {
      exchange.isPartial = false;
      this.#call = undefined;
      this.isAuthenticated = untilMs !== undefined;
      this.#untilMs = untilMs ?? 0;
      if (this.isAuthenticated) allowed();
      else exchange.settle(refusal);
    });
    if (exchange.isPartial) this.#call = call;
  }

  #authenticate(exchange: Exchange, words: Command): void {
    const { credentials, externalAuth } = this.#proxy;
    const pair = words.length === 3 ? { username: words[1]!, password: words[2]! } : undefined;
    if (externalAuth !== undefined) {
      const one = { username: NO_NAME, password: words[1]! };
      return this.#ask(exchange, pair ?? one, 'ERR', () => exchange.settle(OK));
    }
    if (pair !== undefined) return exchange.settle(this.#pair(pair));
    if (!credentials.areRequired) return exchange.settle(NO_PASSWORD);
    this.isAuthenticated = credentials.accept(words[1]!);
    exchange.settle(this.isAuthenticated ? OK : WRONG_PASSWORD);
  }

  #pair({ password, username }: Pair): Buffer {
    if (!this.#proxy.credentials.areRequired) return NO_PAIR;
    this.isAuthenticated = this.#proxy.credentials.accept(password, username);
    return this.isAuthenticated ? OK : WRONG_PAIR;
  }

  #wrongCount(exchange: Exchange, words: Command): void {
    exchange.settle(errorReply(wrongCount(words)));
  }

  #invalid(exchange: Exchange): true {
    this.#proxy.stats.splitter.increment(SplitterStats.at.invalid_request);
    exchange.settle(INVALID);
    return true;
  }

  #unknown(exchange: Exchange, words: Command): true {
    this.#proxy.stats.splitter.increment(SplitterStats.at.unsupported_command);
    const shown = (word: Buffer = Buffer.alloc(0)) => word.toString('latin1').slice(0, MAX_SHOWN);
    exchange.settle(
      errorReply(`ERR unknown command '${shown(words[0])}', with args beginning with: ${shown(words[1])}`),
    );
    return true;
  }
}

const MAX_SHOWN = 128;

function wrongCount(words: Command): string {
  return `wrong number of arguments for '${words[0]}' command`;
}
