// The commands that the proxy answers itself, except those that change the state of a client.

import type { Exchange } from './exchange.js';
import { arrayReply, errorReply, integerReply, mapReply, statusReply, stringReply } from './resp/write.js';

const OK = statusReply('OK');
const PONG = statusReply('PONG');
export const INVALID = errorReply('invalid request');

/** Returns the reply to a CLIENT, ECHO, PING or TIME. */
export function ownReply({ proxy }: Exchange, name: string, words: readonly Buffer[]): Buffer {
  if (name === 'ping') return PONG;
  if (name === 'echo') return words.length === 2 ? stringReply(words[1]!) : INVALID;
  if (name === 'client') return clientReply(words);
  const micros = Math.round(proxy.clock.realtimeMs * 1000);
  const seconds = Math.floor(micros / 1e6);
  return arrayReply([seconds, micros % 1e6].map((number) => stringReply(Buffer.from(String(number)))));
}

/** Clients of libraries name themselves before they do anything else. */
function clientReply(words: readonly Buffer[]): Buffer {
  const subcommand = words[1]!.toString('latin1');
  if (subcommand.toLowerCase() === 'setinfo') return OK;
  if (subcommand.toLowerCase() !== 'setname') {
    return errorReply(`ERR CLIENT subcommand '${subcommand}' is not supported by the proxy`);
  }
  return words.length === 3 ? OK : errorReply("ERR wrong number of arguments for 'client|setname' command");
}

const text = (value: string) => stringReply(Buffer.from(value));

function greeting(version: number): Buffer[] {
  return [
    text('server'),
    text('envoy-redis-proxy'),
    text('version'),
    text('6.0.0'),
    text('proto'),
    integerReply(version),
    text('id'),
    integerReply(0),
    text('mode'),
    text('standalone'),
    text('role'),
    text('master'),
    text('modules'),
    arrayReply([]),
  ];
}

/** The replies to HELLO. */
export const GREETING_2 = arrayReply(greeting(2));
export const GREETING_3 = mapReply(greeting(3));
