// A running Baton with scripted filters (scripted-filter.ts), and a host controlled by the test.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type BatonProcess,
  type Config,
  connectRaw,
  fileAccessLog,
  httpRequest,
  RawConnection,
  ROUTER_FILTER,
  startTcpUpstream,
  staticCluster,
  type Teardown,
  TRAILERS_CLUSTER,
  tempDir,
  UNBUNDLED,
  waitFor,
} from '../../harness/index.js';
import { type Message, parseMessage } from '../message.js';
import { managerOf, routeTo, startProxy } from '../proxy.js';
import { FILTER_TYPE, LOGGER_TYPE, type Report, type Script, type Scripts } from './scripted-filter.js';

/** A filter that records everything, and neither holds nor changes anything. */
export const WATCH: Script = {
  decodeHeaders: '',
  decodeData: '',
  decodeTrailers: '',
  encodeHeaders: '',
  encodeData: '',
  encodeTrailers: '',
};

/** The filters of the chain, in configured order. */
const CHAIN = ['a', 'b', 'c'] as const;

export interface ScriptedProxyOptions {
  /** Merged into the connection manager. */
  manager?: Config;
  /** Merged into the route. */
  route?: Config;
  /** Merged into the listener. */
  listener?: Config;
  /** Merged into the cluster. */
  cluster?: Config;
}

/** One request, from its client's side. */
export interface ScriptedRequest {
  readonly id: string;
  readonly client: RawConnection;
  /** Address of the client as in the access log. */
  readonly address: string;
  /** Reads the response, whose length its header section announces. */
  answer(): Promise<Message>;
  /** Returns what its filters have seen and done, in order. */
  events(): Promise<readonly string[]>;
  /** Waits until a filter has seen or done this. */
  sees(event: string): Promise<void>;
  /** Makes one of its filters perform an action, from an event of another connection. */
  perform(filter: string, words: string): Promise<void>;
}

export interface RequestLine {
  method?: string;
  path?: string;
  /** Further header lines, each with its CRLF. */
  headers?: string;
  /** Sent right after the header section. */
  body?: string;
  /** An existing connection to use. */
  on?: RawConnection;
}

export class ScriptedProxy {
  readonly baton: BatonProcess;
  readonly port: number;
  readonly #t: Teardown;
  readonly #control: number;
  readonly #logPath: string;
  readonly #arrivals: RawConnection[];
  readonly #clients: RawConnection[] = [];
  /** Number of log lines read, by client address. */
  readonly #read = new Map<string, number>();
  #requests = 0;
  #idleBytes = 0;

  constructor(t: Teardown, baton: BatonProcess, ports: [number, number], logPath: string, arrivals: RawConnection[]) {
    this.#t = t;
    this.baton = baton;
    [this.port, this.#control] = ports;
    this.#logPath = logPath;
    this.#arrivals = arrivals;
  }

  /** Records the memory retained now as the baseline for leaks. */
  async begin(): Promise<void> {
    this.#idleBytes = (await this.#report('-')).retainedBytes;
  }

  /** Sends a request whose filters follow the scripts. */
  async send(scripts: Scripts, line: RequestLine = {}): Promise<ScriptedRequest> {
    const { method = 'GET', path = '/', headers = '', body = '' } = line;
    const id = String(++this.#requests);
    const client = line.on ?? (await this.connect());
    const { localAddress, localPort } = client.socket;
    const own = `x-id: ${id}\r\nx-script: ${JSON.stringify(scripts)}\r\n`;
    client.write(`${method} ${path} HTTP/1.1\r\nhost: a\r\n${own}${headers}\r\n${body}`);
    const events = async () => (await this.#report(id)).events;
    return {
      id,
      client,
      address: `${localAddress}:${localPort}`,
      answer: () => readWhole(client),
      events,
      sees: async (event) =>
        void (await waitFor(async () => (await events()).includes(event), { what: `${event} of request ${id}` })),
      perform: async (filter, words) => void (await this.#report(`${id} ${filter} ${words}`)),
    };
  }

  /** Opens a connection for several requests. */
  async connect(): Promise<RawConnection> {
    const client = await connectRaw(this.#t, this.port);
    this.#clients.push(client);
    return client;
  }

  /** Waits for the request at the host, and returns the host's end of its connection, with no bytes consumed. */
  host(request: ScriptedRequest): Promise<RawConnection> {
    return waitFor(() => this.#hostOf(request), { what: `request ${request.id} on the host` });
  }

  /** Whether any part of the request has arrived at the host, unless it was consumed. */
  isAtHost(request: ScriptedRequest): boolean {
    return this.#hostOf(request) !== undefined;
  }

  /** Reads the next access log line of the request's connection: status, details, flags, bytes received and sent. */
  async logged({ address }: ScriptedRequest): Promise<string> {
    const index = this.#read.get(address) ?? 0;
    this.#read.set(address, index + 1);
    const lines = () =>
      readFileSync(this.#logPath, 'latin1')
        .split('\n')
        .filter((line) => line.startsWith(`${address} `));
    const line = await waitFor(() => lines()[index], { what: `line ${index} of ${address} in the access log` });
    return line.slice(address.length + 1);
  }

  /** Closes all client connections, and checks that nothing of any request is left. */
  async settle(): Promise<void> {
    for (const client of this.#clients.splice(0)) client.reset();
    for (const connection of this.#arrivals.splice(0)) connection.reset();
    await this.isQuiet();
    await this.baton.waitForStat('http.main.downstream_cx_active', 0);
  }

  #hostOf({ id }: ScriptedRequest): RawConnection | undefined {
    return this.#arrivals.find(({ received }) => received.includes(`\r\nx-id: ${id}\r\n`));
  }

  /** Waits until no request is left, nor any memory held by one. */
  async isQuiet(): Promise<void> {
    await this.baton.waitForStat('http.main.downstream_rq_active', 0);
    await this.baton.waitForStat('cluster.host.upstream_rq_active', 0);
    await this.baton.waitForStat('cluster.host.upstream_rq_pending_active', 0);
    await waitFor(async () => (await this.#report('-')).retainedBytes === this.#idleBytes, {
      what: `${this.#idleBytes} retained bytes`,
      deadlineMs: 5000,
    });
  }

  /** Returns the counters of responses and of aborted streams, without the prefix downstream_rq_ of the connection manager. */
  async counters(): Promise<Counters> {
    const { body } = await this.baton.admin('/stats?filter=^http\\.main\\.downstream_rq_(.xx|.x_reset|too_large)$');
    return Object.fromEntries(
      body
        .trim()
        .split('\n')
        .map((line) => line.split(': '))
        .map(([name, value]) => [name!.replace('http.main.downstream_rq_', ''), Number(value)]),
    );
  }

  /** Number of logged exceptions. */
  get faults(): number {
    return this.baton.stderr.split(FAULTS).length - 1;
  }

  async #report(command: string): Promise<Report> {
    const { body } = await httpRequest(this.#control, '/', { headers: { 'x-command': command } });
    return JSON.parse(body) as Report;
  }
}

export async function startScriptedProxy(t: Teardown, options: ScriptedProxyOptions = {}): Promise<ScriptedProxy> {
  const arrivals: RawConnection[] = [];
  const upstream = await startTcpUpstream(t, (socket) => arrivals.push(new RawConnection(socket)));
  const logPath = join(tempDir(t), 'access');
  const format =
    '%DOWNSTREAM_REMOTE_ADDRESS% %RESPONSE_CODE% %RESPONSE_CODE_DETAILS% %RESPONSE_FLAGS% %BYTES_RECEIVED% %BYTES_SENT%\n';
  const { baton, ports } = await startProxy(t, {
    program: UNBUNDLED,
    args: ['-l', 'warning', '--file-flush-interval-msec', '10'],
    nodeArgs: ['--import', new URL('./scripted-filter.js', import.meta.url).href],
    listeners: {
      main: managerOf([routeTo({ prefix: '/' }, 'host', options.route)], {
        http_filters: [...CHAIN.map(filter), ROUTER_FILTER],
        http_protocol_options: { enable_trailers: true },
        upgrade_configs: [{ upgrade_type: 'websocket' }],
        access_log: [THROWING_LOG, fileAccessLog(logPath, format)],
        ...options.manager,
      }),
      control: managerOf([routeTo({ prefix: '/' }, 'host')], { http_filters: [filter('control'), ROUTER_FILTER] }),
    },
    listenerOptions: options.listener ?? {},
    clusters: [staticCluster('host', upstream.port, { ...TRAILERS_CLUSTER, ...options.cluster })],
  });
  const proxy = new ScriptedProxy(t, baton, [ports['main']!, ports['control']!], logPath, arrivals);
  await proxy.begin();
  return proxy;
}

/** Returns the events of one filter. */
export function seenBy(events: readonly string[], filter: string): string[] {
  return events.filter((event) => event.startsWith(`${filter} `)).map((event) => event.slice(filter.length + 1));
}

export type Counters = Readonly<Record<string, number>>;

/** Returns the differences of the counters that have changed. */
export function changes(after: Counters, before: Counters): Counters {
  return Object.fromEntries(
    Object.entries(after)
      .map(([name, value]) => [name, value - before[name]!] as const)
      .filter(([, change]) => change !== 0),
  );
}

/** Reads a message whose length its header section announces. */
export async function readWhole(connection: RawConnection): Promise<Message> {
  const head = await connection.readUntil('\r\n\r\n');
  const message = parseMessage(head);
  const length = Number(message.headers['content-length'] ?? 0);
  return { ...message, rest: await connection.read(length) };
}

function filter(name: string): Config {
  return { name, typed_config: { '@type': `type.googleapis.com/${FILTER_TYPE}`, stat_prefix: name } };
}

const THROWING_LOG: Config = { name: 'throwing', typed_config: { '@type': `type.googleapis.com/${LOGGER_TYPE}` } };

const FAULTS =
  /a connection was ended after an internal error|a timer failed|unhandled promise rejection|of a filter failed|an access logger failed/;
