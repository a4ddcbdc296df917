// Commands that several hosts reply to: those with many keys, and those about all keys.

import type { Exchange } from '../exchange.js';
import { NO_HOST } from '../exchange.js';
import { commandBytes, errorReply } from '../resp/write.js';
import {
  allOk,
  common,
  GatheredReplies,
  joined,
  joinedOrErrors,
  listOf,
  type Merge,
  onlyOne,
  sumOf,
  unlessError,
} from './gathered-replies.js';
import { sendByKey, sendToHost } from './single-command.js';

const GET = Buffer.from('get');
const SET = Buffer.from('set');
const UNSUPPORTED = errorReply('ERR unsupported cluster scope command or invalid arguments');

export function sendSum(exchange: Exchange, words: readonly Buffer[]): void {
  const [name, ...keys] = words;
  const replies = new GatheredReplies(exchange, keys.length, sumOf);
  for (const [index, key] of keys.entries()) sendByKey(exchange, [name!, key], 1, replies.receiver(index));
}

export function sendMultiGet(exchange: Exchange, words: readonly Buffer[]): void {
  const keys = words.slice(1);
  const replies = new GatheredReplies(exchange, keys.length, listOf);
  for (const [index, key] of keys.entries()) sendByKey(exchange, [GET, key], 1, replies.receiver(index));
}

export function sendMultiSet(exchange: Exchange, words: readonly Buffer[]): void {
  const count = (words.length - 1) / 2;
  const replies = new GatheredReplies(exchange, count, allOk);
  for (let index = 0; index < count; index++) {
    const [key, value] = [words[index * 2 + 1]!, words[index * 2 + 2]!];
    sendByKey(exchange, [SET, key, value], 1, replies.receiver(index));
  }
}

export function sendScan(exchange: Exchange, words: readonly Buffer[]): void {
  sendToAll(exchange, words, joinedOrErrors);
}

/** Sends a command about all keys to all hosts. */
export function sendToAllHosts(exchange: Exchange, name: string, words: readonly Buffer[]): void {
  const merge = mergeOf(name, words[1]?.toString('latin1').toLowerCase() ?? '');
  if (merge === undefined) return exchange.settle(UNSUPPORTED);
  sendToAll(exchange, words, unlessError(merge));
}

function sendToAll(exchange: Exchange, words: readonly Buffer[], merge: Merge): void {
  const cluster = exchange.proxy.routes.find(Buffer.alloc(0))?.cluster.current;
  if (cluster === undefined || cluster.hostCount === 0) return exchange.settle(NO_HOST);
  const command = commandBytes(words);
  const name = words[0]!.toString('latin1').toLowerCase();
  const hosts = Array.from({ length: cluster.hostCount }, (_, index) => cluster.hostWith(index));
  const replies = new GatheredReplies(exchange, hosts.length, merge);
  for (const [index, host] of hosts.entries()) {
    sendToHost(exchange, cluster, host, command, name, replies.receiver(index));
  }
}

const SAME: readonly string[] = ['flushall', 'flushdb', 'script', 'select'];
const SUBCOMMANDS: Readonly<Record<string, Merge>> = {
  'config get': joined,
  'config set': common,
  'config resetstat': common,
  'config rewrite': common,
  'slowlog get': joined,
  'slowlog len': sumOf,
  'slowlog reset': common,
};

function mergeOf(name: string, subcommand: string): Merge | undefined {
  if (SAME.includes(name)) return common;
  if (name === 'keys') return joined;
  if (name === 'role') return listOf;
  if (name === 'info') return onlyOne;
  return SUBCOMMANDS[`${name} ${subcommand}`];
}
