// A host that speaks the Redis protocol, for tests: it stores strings, and misbehaves for certain keys.

import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { RequestReader } from '../../../src/extensions/filters/network/redis-proxy/resp/request-reader.js';
import type { Teardown } from '../harness/index.js';

const UNLIMITED = { reserve: () => true, release() {} };

export interface RedisHost {
  readonly port: number;
  /** What it has received, a line for each command: the words, with a space between them. */
  readonly commands: string[];
  readonly sockets: Set<Socket>;
  /** Connections that it has had. */
  accepted: number;
  readonly values: Map<string, string>;
}

/** `reply`: returns the bytes of a reply for words that it treats in its own way; undefined for the others. */
export async function startRedisHost(
  t: Teardown,
  reply: (words: readonly string[], socket: Socket) => string | undefined = () => undefined,
): Promise<RedisHost> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    host.accepted++;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket)).on('error', () => {});
    const reader = new RequestReader(UNLIMITED);
    const queue: string[][] = [];
    const state: ConnectionState = { transaction: undefined };
    socket.on('data', (data) => {
      reader.add(data, 0, data.length);
      for (let words = reader.next(); words !== undefined; words = reader.next()) {
        queue.push(words.map((word) => word.toString('latin1')));
      }
      reader.keep();
      for (const words of queue.splice(0)) {
        host.commands.push(words.join(' '));
        socket.write(reply(words, socket) ?? answer(host, state, words), 'latin1');
      }
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as { port: number };
  const host: RedisHost = { port, commands: [], sockets, accepted: 0, values: new Map() };
  return host;
}

interface ConnectionState {
  /** The commands since MULTI. */
  transaction: string[][] | undefined;
}

const string = (value: string | undefined) => (value === undefined ? '$-1\r\n' : `$${value.length}\r\n${value}\r\n`);

function answer(host: RedisHost, state: ConnectionState, words: string[]): string {
  const { values } = host;
  const [command = '', key = '', value = ''] = words;
  const name = command.toLowerCase();
  if (name === 'multi') {
    state.transaction = [];
    return '+OK\r\n';
  }
  if (name === 'exec') {
    const replies = (state.transaction ?? []).map((queued) => answer(host, { transaction: undefined }, queued));
    state.transaction = undefined;
    return `*${replies.length}\r\n${replies.join('')}`;
  }
  if (name === 'discard') {
    state.transaction = undefined;
    return '+OK\r\n';
  }
  if (state.transaction !== undefined) {
    state.transaction.push(words);
    return '+QUEUED\r\n';
  }
  switch (name) {
    case 'get':
      return string(values.get(key));
    case 'set':
      values.set(key, value);
      return '+OK\r\n';
    case 'del':
      return `:${words.slice(1).filter((name) => values.delete(name)).length}\r\n`;
    case 'exists':
      return `:${values.has(key) ? 1 : 0}\r\n`;
    case 'keys':
      return `*${values.size}\r\n${[...values.keys()].map(string).join('')}`;
    case 'scan':
      return `*2\r\n${string('0')}*${values.size}\r\n${[...values.keys()].map(string).join('')}`;
    case 'role':
      return `*2\r\n${string('master')}:0\r\n`;
    case 'flushall':
      values.clear();
      return '+OK\r\n';
    case 'eval':
      return string(words[3]);
    case 'slowlog':
      return key.toLowerCase() === 'len' ? ':2\r\n' : '*0\r\n';
    default:
      return '+OK\r\n';
  }
}
