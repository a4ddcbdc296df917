// Clients whose failures can be attributed to a process: each failure names its connection, and a process can be killed at a
// moment when the connections it holds are known.

import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { Readable } from 'node:stream';
import {
  BETWEEN_REQUESTS_MS,
  bootstrap,
  type Config,
  httpListener,
  staticCluster,
  type Teardown,
  tcpListener,
  waitFor,
  withDeadline,
} from '../harness/index.js';

/** Longer than a busy machine needs for a response. */
const DEADLINE_MS = 20_000;

export interface Failure {
  /** Port of the client; 0 when it had none yet. */
  readonly port: number;
  readonly why: string;
  /** Whether it had not been answered before. */
  readonly isNew: boolean;
}

export interface TrackedPorts {
  readonly http: number;
  /** Echoes its input. */
  readonly tcp: number;
}

/** Number of clients of each kind. */
export interface TrackedClients {
  /** One connection per request. */
  readonly fresh: number;
  /** Connections that may only close after a response has announced it. */
  readonly kept: number;
  /** Connections that must not close. */
  readonly streams: number;
}

export class TrackedLoad {
  readonly failures: Failure[] = [];
  answered = 0;
  #freshAtMs = performance.now();
  #longestGapMs = 0;
  readonly #ports: TrackedPorts;
  readonly #loops: Promise<unknown>;
  #isOver = false;

  constructor(t: Teardown, ports: TrackedPorts, clients: TrackedClients) {
    this.#ports = ports;
    const { fresh, kept, streams } = clients;
    const loops = [
      ...Array.from({ length: fresh }, () => this.#fresh()),
      ...Array.from({ length: kept }, () => this.#kept()),
      ...Array.from({ length: streams }, () => this.#stream()),
    ];
    this.#loops = Promise.all(loops);
    t.teardown(() => this.end());
  }

  /** Waits for `count` further responses. */
  async answers(count: number): Promise<void> {
    const until = this.answered + count;
    await waitFor(() => this.answered >= until, { what: `${count} answers`, deadlineMs: DEADLINE_MS });
  }

  /** Stops the clients; resolves when no request is in flight. */
  async end(): Promise<void> {
    this.#isOver = true;
    await this.#loops;
  }

  /** Returns the failures since the last call, except those of connections with these ports. */
  takeFailures(held: ReadonlySet<number> = new Set()): Failure[] {
    return this.failures.splice(0).filter(({ port }) => !held.has(port));
  }

  /** Returns the longest time without a response on a new connection, since the last call. */
  takeLongestGapMs(): number {
    this.#freshAnswered();
    const longest = this.#longestGapMs;
    this.#longestGapMs = 0;
    return longest;
  }

  #freshAnswered(): void {
    const now = performance.now();
    this.#longestGapMs = Math.max(this.#longestGapMs, now - this.#freshAtMs);
    this.#freshAtMs = now;
  }

  async #fresh(): Promise<void> {
    await this.#loop(async () => {
      const client = new Client(this.#ports.http);
      await client.exchange('GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n', isWhole);
      this.#freshAnswered();
      client.socket.destroy();
    });
  }

  async #kept(): Promise<void> {
    let client: Client | undefined;
    await this.#loop(async () => {
      client ??= new Client(this.#ports.http);
      const used = client;
      const answer = await used.exchange('GET / HTTP/1.1\r\nhost: a\r\n\r\n', isWhole).catch((error) => {
        client = undefined;
        throw error;
      });
      if (!/^connection: close\r$/im.test(answer)) return;
      client = undefined;
      used.socket.destroy();
    });
    client?.socket.destroy();
  }

  async #stream(): Promise<void> {
    let client: Client | undefined;
    let sent = 0;
    await this.#loop(async () => {
      client ??= new Client(this.#ports.tcp);
      const word = `word ${sent++}.`;
      await client
        .exchange(word, (text) => text.length >= word.length)
        .then(
          (text) => {
            if (text !== word) throw new ClientError(client!, `${JSON.stringify(text)} came back for ${word}`);
          },
          (error) => {
            client = undefined;
            throw error;
          },
        );
    });
    client?.socket.destroy();
  }

  async #loop(turn: () => Promise<unknown>): Promise<void> {
    while (!this.#isOver) {
      try {
        await turn();
        this.answered++;
      } catch (error) {
        if (!(error instanceof ClientError)) throw error;
        const { port, answers } = error.client;
        this.failures.push({ port, why: error.message, isNew: answers === 0 });
      }
      await new Promise((resolve) => setTimeout(resolve, BETWEEN_REQUESTS_MS));
    }
  }
}

/** Stops a process, records the clients of these listeners that it holds, and kills it. Returns their ports. */
export async function killHolding(pid: number, ports: TrackedPorts): Promise<Set<number>> {
  process.kill(pid, 'SIGSTOP');
  await waitFor(() => isStopped(pid), { what: 'all threads to stop' });
  const held = heldClients(pid, Object.values(ports));
  process.kill(pid, 'SIGKILL');
  return held;
}

/** Starts the echo server of the TCP streams. Returns its port. */
export async function startEcho(t: Teardown): Promise<number> {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.pipe(socket);
    t.teardown(() => void socket.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** Returns a configuration with the listeners of the clients; the one for streams leads to the port `echo`. */
export function trackedConfig(ports: TrackedPorts, echo: number): Config {
  const route = { match: { prefix: '/' }, direct_response: { status: 200, body: { inline_string: 'here' } } };
  const routes = { route_config: { virtual_hosts: [{ name: 'a', domains: ['*'], routes: [route] }] } };
  return bootstrap({
    listeners: [httpListener('http', ports.http, routes), tcpListener('tcp', ports.tcp, { cluster: 'echo' })],
    clusters: [staticCluster('echo', echo)],
  });
}

/** Resolves as soon as a text appears in further output. */
export function waitForText(output: Readable, text: string, deadlineMs?: number): Promise<void> {
  let seen = '';
  const appears = new Promise<void>((resolve, reject) => {
    const settle = (how: () => void) => {
      output.off('data', look).off('end', end);
      how();
    };
    const look = (chunk: string) => {
      seen += chunk;
      if (seen.includes(text)) settle(resolve);
    };
    const end = () => settle(() => reject(new Error(`the output ended without ${text}:\n${seen}`)));
    output.on('data', look).on('end', end);
  });
  appears.catch(() => {});
  return withDeadline(appears, text, deadlineMs);
}

class ClientError extends Error {
  constructor(
    readonly client: Client,
    message: string,
  ) {
    super(message);
  }
}

class Client {
  readonly socket: Socket;
  port = 0;
  answers = 0;
  #text = '';
  #over: string | undefined;
  #changed = () => {};

  constructor(port: number) {
    this.socket = connect(port, '127.0.0.1').setEncoding('latin1');
    this.socket.on('connect', () => (this.port = this.socket.localPort!));
    this.socket.on('data', (chunk) => {
      this.#text += String(chunk);
      this.#changed();
    });
    this.socket.on('error', (error) => this.#end(error.message));
    this.socket.on('end', () => this.#end('the connection has ended'));
  }

  /** Sends a request, and returns the response when it is complete. Throws ClientError. */
  exchange(request: string, isAnswer: (text: string) => boolean): Promise<string> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.#end('no response in time'), DEADLINE_MS);
      this.#changed = () => {
        const isComplete = isAnswer(this.#text);
        if (!isComplete && this.#over === undefined) return;
        clearTimeout(timer);
        this.#changed = () => {};
        const text = this.#text;
        this.#text = '';
        if (isComplete) {
          this.answers++;
          resolve(text);
        } else reject(new ClientError(this, `${this.#over} after ${JSON.stringify(text)}`));
      };
      this.socket.write(request);
      this.#changed();
    });
  }

  #end(why: string): void {
    this.#over ??= why;
    this.#changed();
    if (this.#over !== undefined) this.socket.destroy();
  }
}

function isWhole(text: string): boolean {
  const end = text.indexOf('\r\n\r\n');
  if (end < 0) return false;
  const length = /^content-length: (\d+)\r$/im.exec(text.slice(0, end + 2))?.[1];
  return text.length >= end + 4 + Number(length ?? 0);
}

function isStopped(pid: number): boolean {
  return readdirSync(`/proc/${pid}/task`).every((thread) => {
    const stat = readFileSync(`/proc/${pid}/task/${thread}/stat`, 'latin1');
    return stat[stat.lastIndexOf(')') + 2] === 'T';
  });
}

/** Returns the ports of the clients whose connections to these ports the process has accepted. */
function heldClients(pid: number, listeners: readonly number[]): Set<number> {
  const held = new Set<number>();
  for (const { local, remote } of socketsOf(pid)) if (listeners.includes(local)) held.add(remote);
  // Listening sockets, and connections that were refused, which have no port either.
  held.delete(0);
  return held;
}

/** Whether a running process has a listening socket on this port. */
export function listensAt(pid: number, port: number): boolean {
  try {
    return socketsOf(pid).some(({ isListening, local }) => isListening && local === port);
  } catch {
    return false;
  }
}

function socketsOf(pid: number): { readonly local: number; readonly remote: number; readonly isListening: boolean }[] {
  const directory = `/proc/${pid}/fd`;
  const inodes = new Set(
    readdirSync(directory).map((fd) => /^socket:\[(\d+)\]$/.exec(readlinkSync(`${directory}/${fd}`))?.[1]),
  );
  return readFileSync('/proc/net/tcp', 'latin1')
    .split('\n')
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .filter((fields) => inodes.has(fields[9]))
    .map(([, local = '', remote = '', state]) => {
      return { local: portOf(local), remote: portOf(remote), isListening: state === LISTEN };
    });
}

/** A state in /proc/net/tcp. */
const LISTEN = '0A';

function portOf(hex: string): number {
  return Number.parseInt(hex.split(':')[1] ?? '0', 16);
}
