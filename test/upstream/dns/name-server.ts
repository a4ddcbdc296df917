// A real name server for tests: UDP and TCP on one port of 127.0.0.1, with answers that the test sets.

import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';

export type Answer =
  | {
      readonly a?: readonly string[];
      readonly aaaa?: readonly number[][];
      readonly ttl?: number;
      readonly truncated?: boolean;
      /** Queries of this type get no answer. */
      readonly silentFor?: 'A' | 'AAAA';
    }
  | 'nxdomain'
  | 'servfail'
  | 'hang';

const A = 1;
const AAAA = 28;

export class NameServer {
  /** By lower-case name; missing names do not exist. */
  readonly answers = new Map<string, Answer>();
  /** `A name` and `AAAA name` in the order of the queries, prefixed by `tcp ` over TCP. */
  readonly asked: string[] = [];
  readonly #udp: Socket = createSocket('udp4');
  readonly #tcp: Server = createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', (data) => {
      const reply = this.#reply(data.subarray(2), true);
      if (reply === undefined) return;
      const length = Buffer.alloc(2);
      length.writeUInt16BE(reply.length);
      socket.end(Buffer.concat([length, reply]));
    });
  });
  #port = 0;

  async start(): Promise<void> {
    this.#udp.on('message', (query, from) => {
      const reply = this.#reply(query, false);
      if (reply !== undefined) this.#udp.send(reply, from.port, from.address);
    });
    this.#tcp.listen(0, '127.0.0.1');
    await once(this.#tcp, 'listening');
    this.#port = (this.#tcp.address() as AddressInfo).port;
    this.#udp.bind(this.#port, '127.0.0.1');
    await once(this.#udp, 'listening');
  }

  /** For a nameserver line of resolv.conf. */
  get address(): string {
    return `127.0.0.1:${this.#port}`;
  }

  async stop(): Promise<void> {
    this.#udp.close();
    this.#tcp.close();
    await Promise.all([once(this.#udp, 'close'), once(this.#tcp, 'close')]);
  }

  #reply(query: Buffer, isTcp: boolean): Buffer | undefined {
    const { name, type, end } = question(query);
    const typeName = type === A ? 'A' : 'AAAA';
    this.asked.push(`${isTcp ? 'tcp ' : ''}${typeName} ${name}`);
    const answer = this.answers.get(name) ?? 'nxdomain';
    if (answer === 'hang') return undefined;
    if (answer === 'nxdomain' || answer === 'servfail') return message(query, end, answer === 'nxdomain' ? 3 : 2, []);
    if (answer.silentFor === typeName) return undefined;
    if (answer.truncated && !isTcp) return message(query, end, 0, [], true);
    const data =
      type === A
        ? (answer.a ?? []).map((ip) => Buffer.from(ip.split('.').map(Number)))
        : type === AAAA
          ? (answer.aaaa ?? []).map((groups) => Buffer.from(groups.flatMap((group) => [group >> 8, group & 255])))
          : [];
    const records = data.map((rdata) => {
      const head = Buffer.from([0xc0, 12, 0, type, 0, 1, 0, 0, 0, 0, 0, rdata.length]);
      head.writeUInt32BE(answer.ttl ?? 60, 6);
      return Buffer.concat([head, rdata]);
    });
    return message(query, end, 0, records);
  }
}

function question(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (; query[at] !== 0; at += query[at]! + 1) labels.push(query.toString('latin1', at + 1, at + 1 + query[at]!));
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 };
}

function message(query: Buffer, end: number, rcode: number, records: readonly Buffer[], truncated = false): Buffer {
  const head = Buffer.from(query.subarray(0, end));
  head[2] = 0x84 | (query[2]! & 1) | (truncated ? 2 : 0);
  head[3] = 0x80 | rcode;
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(records.length, 6);
  head.writeUInt32BE(0, 8);
  return Buffer.concat([head, ...records]);
}
