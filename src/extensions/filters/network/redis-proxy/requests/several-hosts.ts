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
/** The clients of a worker share the connections, and would all get the other database. */
const OTHER_DATABASE = errorReply('ERR SELECT is not supported: clients share the connections to hosts');
const UNSUPPORTED = errorReply('ERR unsupported cluster scope command or invalid arguments');

export function sendSum(exchange: Exchange, words: readonly Buffer[]): void {
  new GatheredReplies(exchange, words.length - 1, sumOf, (index, receiver) => {
    sendByKey(exchange, [words[0]!, words[index + 1]!], 1, receiver);
  }).start();
}

export function sendMultiGet(exchange: Exchange, words: readonly Buffer[]): void {
  new GatheredReplies(exchange, words.length - 1, listOf, (index, receiver) => {
    sendByKey(exchange, [GET, words[index + 1]!], 1, receiver);
  }).start();
}

export function sendMultiSet(exchange: Exchange, words: readonly Buffer[]): void {
  const count = (words.length - 1) / 2;
  new GatheredReplies(exchange, count, allOk, (index, receiver) => {
    sendByKey(exchange, [SET, words[index * 2 + 1]!, words[index * 2 + 2]!], 1, receiver);
  }).start();
}

export function sendScan(exchange: Exchange, words: readonly Buffer[]): void {
  sendToAll(exchange, words, joinedOrErrors);
}

/** Sends a command about all keys to all hosts. */
export function sendToAllHosts(exchange: Exchange, name: string, words: readonly Buffer[]): void {
  const argument = words[1]?.toString('latin1').toLowerCase() ?? '';
  if (name === 'select' && argument !== '0') return exchange.settle(OTHER_DATABASE);
  const merge = name === 'script' && argument === 'debug' ? undefined : mergeOf(name, argument);
  if (merge === undefined) return exchange.settle(UNSUPPORTED);
  sendToAll(exchange, words, unlessError(merge));
}

function sendToAll(exchange: Exchange, words: readonly Buffer[], merge: Merge): void {
  const { hosts: clients, routes } = exchange.proxy;
  const cluster = clients.clusterOf(routes.find(Buffer.alloc(0))?.cluster.current, undefined);
  if (cluster === undefined || cluster.hostCount === 0) return exchange.settle(NO_HOST);
  const command = commandBytes(words);
  const name = words[0]!.toString('latin1').toLowerCase();
  const hosts = clients.ofAllKeys(cluster, READS.includes(name));
  if (hosts.length === 0) return exchange.settle(NO_HOST);
  new GatheredReplies(exchange, hosts.length, merge, (index, receiver) => {
    const host = hosts[index];
    if (host === undefined) receiver.replied(NO_HOST);
    else sendToHost(exchange, cluster, host, command, name, receiver);
  }).start();
}

/** Replicas may answer them too. Others are about the servers themselves, or change something. */
const READS: readonly string[] = ['keys', 'scan'];
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
