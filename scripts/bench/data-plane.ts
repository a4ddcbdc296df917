// The cost of a request in Baton's own code: the whole data plane of a worker, from received bytes to submitted sends, on a
// simulated transport. Without kernel and peers, the result is repeatable on a busy machine.
//
//   npm run build && node dist/scripts/bench/data-plane.js [--browser] [--varied] [--access-log=PATH] [--connections=64] [--seconds=3]
//     [--filter=sync|async|header_mutation] [--filters=1] [--http2=both|clients] [--streams=32]
//
// With --http2: clients, or clients and hosts, speak HTTP/2, each connection of a client with that many requests at a time.
// With --filter: that many filters before the router, each of which reads a header and sets one. sync and async are modules in
// TypeScript, which need Node's options of src/scripts/thread-options.ts.

import { AccessLogFiles } from '../../src/access-log/files/file-log.js';
import { Random } from '../../src/common/random.js';
import { nextTurn } from '../../src/common/time/next-turn.js';
import { bufferLimitBytes } from '../../src/config/fields/buffer-limit.js';
import { HTTP_OPTIONS } from '../../src/config/fields/http-options.js';
import { ownRoutes } from '../../src/config/fields/own-routes.js';
import type { Cluster as ClusterConfig, Listener } from '../../src/config/generated/api.js';
import type { WorkerContext } from '../../src/extensions/factories.js';
import { EXTENSIONS } from '../../src/extensions/index.js';
import { ExtensionRegistry } from '../../src/extensions/registry.js';
import { requestMatchers } from '../../src/extensions/request-matchers.js';
import { HeaderBlockPool } from '../../src/http/headers/header-block.js';
import { encodeIp } from '../../src/io/addresses/address.js';
import { DatagramAccess } from '../../src/io/datagrams/datagram-access.js';
import { Memory } from '../../src/io/memory.js';
import {
  ClockWord,
  Control,
  EVENT_STRIDE,
  Event,
  type NativeShim,
  type NativeTransport,
  Op,
  SUBMISSION_STRIDE,
  type TransportOptions,
} from '../../src/io/shim.js';
import { openThreadIo } from '../../src/io/thread-io.js';
import { Runtime } from '../../src/runtime/runtime.js';
import type { PublishedScripts } from '../../src/scripts/published.js';
import { WorkerScripts } from '../../src/scripts/worker-scripts.js';
import { raiseInliningLimit } from '../../src/server/start/optimizer.js';
import { ClusterStats, HostStats } from '../../src/stats/layouts/cluster.js';
import { Http2Stats } from '../../src/stats/layouts/http.js';
import { ListenerStats, ListenerWorkerStats } from '../../src/stats/layouts/listener.js';
import { StatsStore } from '../../src/stats/store.js';
import { type ScopeRef, ThreadStats } from '../../src/stats/thread-stats.js';
import { DEFAULT_ASSIGNMENT_POLICY } from '../../src/upstream/assignment-policy.js';
import { clusterSpec } from '../../src/upstream/cluster-config.js';
import { ClusterManager } from '../../src/upstream/cluster-manager.js';
import { discoverySpec, staticEndpoint } from '../../src/upstream/discovery-config.js';
import { HostDirectory } from '../../src/upstream/hosts/host-directory.js';
import { SharedWords, SharedWordsOwner } from '../../src/upstream/shared-words.js';
import { OwnTokenBucket } from '../../src/upstream/token-bucket.js';
import { AwaitedClusters, MISSING_CLUSTERS_PORT } from '../../src/worker/clusters/awaited-clusters.js';
import { callsOf } from '../../src/worker/extensions/extension-thread.js';
import { FilterConfigs } from '../../src/worker/extensions/filter-configs.js';
import { WorkerPorts } from '../../src/worker/extensions/worker-ports.js';
import { WorkerListeners } from '../../src/worker/listeners/worker-listeners.js';
import { packRoutes } from '../../src/worker/messages/packed-routes.js';
import { ON_DEMAND_PORT } from '../../src/worker/routes/awaited-hosts.js';
import { RouteTables } from '../../src/worker/routes/route-tables.js';
import { specifiersOf } from '../../src/worker/routes/specifiers.js';
import { CLIENT_START, HOST_START, Http2Reader, Http2Sender } from './components/http2-frames.js';

const CURL_REQUEST =
  'GET /some/path?x=1 HTTP/1.1\r\nHost: 127.0.0.1:18080\r\nUser-Agent: curl/7.88.1\r\nAccept: */*\r\n\r\n';
const BROWSER_REQUEST =
  'GET /index.html HTTP/1.1\r\nHost: www.example.com\r\nConnection: keep-alive\r\nsec-ch-ua: "Chromium";v="130", "Not?A_Brand";v="99"\r\n' +
  'sec-ch-ua-mobile: ?0\r\nsec-ch-ua-platform: "Linux"\r\nUpgrade-Insecure-Requests: 1\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36\r\n' +
  'Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8\r\nSec-Fetch-Site: none\r\nSec-Fetch-Mode: navigate\r\nAccept-Encoding: gzip, deflate, br\r\nAccept-Language: en-US,en;q=0.9\r\n\r\n';
const RESPONSE =
  'HTTP/1.1 200 OK\r\nServer: up\r\nDate: Fri, 20 Nov 2026 08:43:06 GMT\r\nContent-Type: text/plain\r\nContent-Length: 128\r\nConnection: keep-alive\r\n\r\n' +
  'x'.repeat(128);

/** With --varied, added after the first field, with a different number in each request. */
const VARIED_FIELD = 'X-Number: 00000000\r\n';
const DIGITS = 8;

/** Rounds of one request per connection that are measured together, about ten milliseconds. */
const WINDOW_ROUNDS = 50;
/** Bytes of a connection in one event. */
const RESPONSE_BATCH = 48 * 1024;
/** Turns in which all requests of a round must have been taken. */
const MAX_TURNS = 1000;
const LISTENER_ID = 1;
const FIRST_CLIENT = 2;

/** Passes batches to the data plane and reads its submissions. */
class FakeTransport implements NativeTransport {
  readonly options: TransportOptions;
  /** Upstream connections that have received a request since the last check. */
  readonly asked: number[] = [];
  /** The same with HTTP/2: the connection of each stream, and the streams. */
  readonly askedStreams: number[] = [];
  /** With HTTP/2: the streams of clients that have got the head of a response. */
  readonly answeredStreams: number[] = [];
  /** With HTTP/2, by connection. */
  readonly readers = new Map<number, Http2Reader>();
  readonly connecting: number[] = [];
  #next: number;

  constructor(options: TransportOptions, clients: number) {
    this.options = options;
    this.#next = FIRST_CLIENT + clients;
  }

  batch(count: number): void {
    const { clock, control } = this.options;
    const now = performance.now();
    clock[ClockWord.Monotonic] = now;
    clock[ClockWord.Realtime] = performance.timeOrigin + now;
    this.options.onBatch(0, count);
    this.flush();
    control[Control.Submissions] = 0;
  }

  flush(): void {
    const { control, memory, submissions } = this.options;
    const count = control[Control.Submissions]!;
    let last = -1;
    for (let index = 0; index < count; index++) {
      const at = index * SUBMISSION_STRIDE;
      const id = submissions[at + 1]!;
      const isToHost = id >= this.firstUpstream;
      if (submissions[at] === Op.Send && (isToHost ? withHttp2Hosts : http2 !== undefined)) {
        const offset = submissions[at + 2]!;
        const streams = isToHost ? this.askedStreams : this.answeredStreams;
        this.#readerOf(id, isToHost).read(memory, offset, offset + submissions[at + 3]!, streams);
        while (withHttp2Hosts && this.asked.length < this.askedStreams.length) this.asked.push(id);
      } else if (submissions[at] === Op.Send && isToHost && id !== last) this.asked.push(id);
      last = id;
    }
    control[Control.Submissions] = 0;
  }

  #readerOf(id: number, isToHost: boolean): Http2Reader {
    let reader = this.readers.get(id);
    if (reader === undefined) this.readers.set(id, (reader = new Http2Reader(isToHost ? 'client' : 'host')));
    return reader;
  }

  firstUpstream = 0;
  startTls(): boolean {
    return false;
  }
  tlsState(): undefined {}
  tlsNames(): undefined {}
  tlsFailure(): undefined {}
  tlsStaple(): undefined {}
  takeTlsKeys(): undefined {}
  peerCertificates(): undefined {}
  peerIssuer(): undefined {}
  ownCertificate(): undefined {}
  connect(): number {
    const id = this.#next++;
    this.connecting.push(id);
    return id;
  }
  addListener(): number {
    return LISTENER_ID;
  }
  setAccepting(): void {}
  removeListener(): void {}
  adopt(): number {
    return 0;
  }
  freeze(): boolean {
    return false;
  }
  copyFrozen(): never {
    throw new Error('connections are never frozen here');
  }
  thaw(): boolean {
    return false;
  }
  releaseFrozen(): boolean {
    return false;
  }
  originalDestination(): Uint8Array {
    return new Uint8Array(0);
  }

  localAddress(): Uint8Array {
    return encodeIp('127.0.0.1', 18080);
  }
  pendingBytes(): number {
    return 0;
  }
  keepAlive(): void {}
  counts() {
    return { connections: 0, listeners: 0, closing: 0 };
  }
  isStarved(): boolean {
    return false;
  }
  close(): void {}
}

const flags = new Map(
  process.argv.slice(2).map((argument) => {
    const [name, value] = argument.replace(/^--/, '').split('=');
    return [name!, value ?? 'true'] as const;
  }),
);
const clients = Number(flags.get('connections') ?? (flags.has('http2') ? 16 : 64));
const seconds = Number(flags.get('seconds') ?? 3);

/** Undefined: everything is HTTP/1.1. */
const http2 = flags.get('http2');
const withHttp2Hosts = http2 === 'both';
const streams = http2 === undefined ? 1 : Number(flags.get('streams') ?? 32);
const requestsOfRound = clients * streams;

const needsScripts = flags.get('filter') === 'sync' || flags.get('filter') === 'async';

/** Requests go on in later turns. */
const needsTurns = flags.get('filter') === 'async';

const HCM = 'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager';
const accessLogPath = flags.get('access-log');
const listener: Listener = {
  name: 'http',
  filter_chains: [
    {
      filters: [
        {
          name: 'http',
          typed_config: {
            '@type': HCM,
            stat_prefix: 'ingress',
            use_remote_address: true,
            access_log:
              accessLogPath === undefined
                ? undefined
                : [
                    {
                      name: 'file',
                      typed_config: {
                        '@type': 'type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog',
                        path: accessLogPath,
                      },
                    },
                  ],
            route_config: {
              virtual_hosts: [
                { name: 'all', domains: ['*'], routes: [{ match: { prefix: '/' }, route: { cluster: 'up' } }] },
              ],
            },
            http_filters: [
              ...headerFilters(),
              {
                name: 'router',
                typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
              },
            ],
          },
        },
      ],
    },
  ],
};
const cluster: ClusterConfig = {
  name: 'up',
  ...(withHttp2Hosts && {
    typed_extension_protocol_options: {
      [HTTP_OPTIONS]: {
        '@type': `type.googleapis.com/${HTTP_OPTIONS}`,
        explicit_http_config: { http2_protocol_options: {} },
      },
    },
  }),
  load_assignment: {
    cluster_name: 'up',
    endpoints: [
      { lb_endpoints: [{ endpoint: { address: { socket_address: { address: '127.0.0.1', port_value: 19090 } } } }] },
    ],
  },
};

raiseInliningLimit();
const played = await buildWorker();
const requestText = flags.has('browser') ? BROWSER_REQUEST : CURL_REQUEST;
const variedAt = requestText.indexOf('\r\n', requestText.indexOf('Host: ')) + 2;
const request = Buffer.from(
  flags.has('varied') ? requestText.slice(0, variedAt) + VARIED_FIELD + requestText.slice(variedAt) : requestText,
  'latin1',
);
let number = 0;
const response = Buffer.from(RESPONSE, 'latin1');
const clientSenders = Array.from({ length: clients }, () => new Http2Sender('requests'));
const hostSenders = new Map<number, Http2Sender>();
let nextStream = 1;
await accept();
await run(1);
const windows = await run(seconds);
process.stdout.write(
  `${windows[0]!.toFixed(3)} µs a request, the best of ${windows.length} windows; median ${windows[windows.length >> 1]!.toFixed(3)}\n`,
);
process.exit(0);

/**
 * Serves rounds of one request per connection, or per stream, for a time. Returns the µs per request in each short window, in ascending order.
 * The best one is the cost of the code: other activity only makes windows longer.
 */
async function run(forSeconds: number): Promise<number[]> {
  const all: number[] = [];
  const end = performance.now() + forSeconds * 1000;
  for (let startUs = cpuUs(); performance.now() < end; ) {
    for (let round = 0; round < WINDOW_ROUNDS; round++) {
      if (flags.has('varied')) nextNumber();
      played.batch(placeRequests());
      await reachHosts();
      played.batch(placeResponses());
      await reachClients();
    }
    const now = cpuUs();
    all.push((now - startUs) / (WINDOW_ROUNDS * requestsOfRound));
    startUs = now;
  }
  return all.sort((a, b) => a - b);
}

/** CPU time of the process: other activity on the machine affects it less than the time that passes. */
function cpuUs(): number {
  const { system, user } = process.cpuUsage();
  return system + user;
}

function nextNumber(): void {
  number++;
  const last = variedAt + VARIED_FIELD.indexOf('0') + DIGITS - 1;
  for (let digit = 0; digit < DIGITS; digit++) request[last - digit] = 48 + ((number >>> (digit * 3)) & 7);
}

/** Places a request of each connection, or of each stream. Returns the number of events. */
function placeRequests(): number {
  if (http2 === undefined) {
    for (let index = 0; index < clients; index++) place(index, FIRST_CLIENT + index, request);
    return clients;
  }
  let offset = 0;
  for (let index = 0; index < clients; index++) {
    const start = offset;
    for (let count = 0; count < streams; count++)
      offset = clientSenders[index]!.write(played.options.memory, offset, nextStream + 2 * count);
    placeData(index, FIRST_CLIENT + index, start, offset);
    offset = aligned(offset);
  }
  nextStream += 2 * streams;
  return clients;
}

/** Places the responses to the requests that have reached the hosts. Returns the number of events. */
function placeResponses(): number {
  const asked = played.asked.splice(0);
  if (asked.length !== requestsOfRound)
    throw new Error(`${asked.length} of ${requestsOfRound} requests reached the upstream`);
  if (!withHttp2Hosts) {
    for (let index = 0; index < asked.length; index++) place(index, asked[index]!, response);
    return asked.length;
  }
  const askedStreams = played.askedStreams.splice(0);
  let [events, offset] = [0, 0];
  for (let index = 0; index < asked.length; events++) {
    const [id, start] = [asked[index]!, offset];
    let sender = hostSenders.get(id);
    if (sender === undefined) hostSenders.set(id, (sender = new Http2Sender('responses')));
    for (; asked[index] === id && offset - start < RESPONSE_BATCH; index++)
      offset = sender.write(played.options.memory, offset, askedStreams[index]!);
    placeData(events, id, start, offset);
    offset = aligned(offset);
  }
  return events;
}

function placeStart(index: number, id: number, bytes: Buffer): void {
  const offset = aligned(index * bytes.length);
  played.options.memory.set(bytes, offset);
  placeData(index, id, offset, offset + bytes.length);
}

function placeData(index: number, id: number, start: number, end: number): void {
  const { events } = played.options;
  const at = index * EVENT_STRIDE;
  events[at] = id;
  events[at + 1] = Event.Data;
  events[at + 2] = start;
  events[at + 3] = end - start;
}

function aligned(offset: number): number {
  return (offset + 63) & ~63;
}

/** Like the shim: one after the other, each aligned to a cache line. */
function place(index: number, id: number, bytes: Buffer): void {
  const offset = index * aligned(bytes.length);
  played.options.memory.set(bytes, offset);
  placeData(index, id, offset, offset + bytes.length);
}

function connectAll(): void {
  const ids = played.connecting.splice(0);
  const { events } = played.options;
  ids.forEach((id, index) => {
    events[index * EVENT_STRIDE] = id;
    events[index * EVENT_STRIDE + 1] = Event.Connected;
  });
  played.batch(ids.length);
  if (!withHttp2Hosts) return;
  for (const [index, id] of ids.entries()) placeStart(index, id, HOST_START);
  played.batch(ids.length);
}

async function accept(): Promise<void> {
  const { control, events, memory } = played.options;
  const address = encodeIp('127.0.0.1', 40000);
  for (let index = 0; index < clients; index++) {
    memory.set(address, index * 1024);
    const at = index * EVENT_STRIDE;
    events[at] = FIRST_CLIENT + index;
    events[at + 1] = Event.Accept;
    events[at + 2] = index * 1024;
    events[at + 3] = address.length;
    control[Control.AcceptedBy + index] = LISTENER_ID;
  }
  played.batch(clients);
  if (http2 !== undefined) {
    for (let index = 0; index < clients; index++) placeStart(index, FIRST_CLIENT + index, CLIENT_START);
    played.batch(clients);
  }
  // The first requests open the upstream connections.
  played.batch(placeRequests());
  await reachHosts();
  played.batch(placeResponses());
  await reachClients();
}

/** Waits until all requests of a round have been sent: HTTP/2 takes what a connection has received in parts, one in each turn. */
async function reachHosts(): Promise<void> {
  if (needsTurns) await nextTurn();
  while (played.connecting.length > 0) connectAll();
  for (let turn = 0; http2 !== undefined && turn < MAX_TURNS && played.asked.length < requestsOfRound; turn++) {
    await nextTurn();
    played.flush();
    while (played.connecting.length > 0) connectAll();
  }
}

/** The same for the responses. */
async function reachClients(): Promise<void> {
  if (http2 === undefined) return;
  for (let turn = 0; turn < MAX_TURNS && played.answeredStreams.length < requestsOfRound; turn++) {
    await nextTurn();
    played.flush();
  }
  const { length } = played.answeredStreams.splice(0);
  if (length !== requestsOfRound) throw new Error(`${length} of ${requestsOfRound} responses reached the clients`);
}

/** The filters of --filter. */
function headerFilters() {
  const kind = flags.get('filter');
  if (kind === undefined) return [];
  const config = {
    '@type': 'type.googleapis.com/baton.filters.http.script.v1.Script',
    module: kind,
  };
  const mutation = {
    '@type': 'type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutation',
    mutations: {
      request_mutations: [
        {
          append: {
            header: { key: 'x-seen', value: '%REQ(user-agent)%' },
            append_action: 'OVERWRITE_IF_EXISTS_OR_ADD',
          },
        },
      ],
    },
  };
  const count = Number(flags.get('filters') ?? 1);
  return Array.from({ length: count }, (_, index) => ({
    name: `${kind}${index}`,
    typed_config: kind === 'header_mutation' ? mutation : config,
  }));
}

/** What the primary would publish. */
function publishedScripts(): PublishedScripts {
  return ['sync', 'async'].map((name) => {
    const entry = `file:///bench/${name}.js`;
    const hook = name === 'sync' ? 'onRequest' : 'async onRequest';
    const text =
      `import { defineHttpFilter } from 'baton'; export default defineHttpFilter({ ${hook}(request) { ` +
      `request.headers.set('x-seen', request.headers.get('user-agent')); } });`;
    return { generation: 1, image: { name, entry, files: { [entry]: { text, isJson: false } } } };
  });
}

async function buildWorker(): Promise<FakeTransport> {
  const store = new StatsStore({ workers: 1 });
  const words = new SharedWordsOwner();
  const ports = new WorkerPorts(0, {}, () => {});
  const scopes = new Map<string, ScopeRef>();
  const extensions = new ExtensionRegistry(EXTENSIONS);
  const identity = { name: 'http', statToken: 'http', bufferLimit: 1024 * 1024 };
  const filter = listener.filter_chains![0]!.filters![0]!.typed_config!;
  for (const { prefix, layout } of [
    { prefix: 'listener.http.', layout: ListenerStats },
    { prefix: 'listener.http.worker_0.', layout: ListenerWorkerStats },
    ...(extensions.networkFilter(filter).scopes?.(filter, identity, extensions) ?? []),
  ])
    scopes.set(prefix, store.addScope(prefix, layout));
  const clusterScope = store.addScope('cluster.up.', ClusterStats);
  const hostScope = store.addScope('cluster.up.host.', HostStats, { hidden: true });
  const directory = new HostDirectory({
    allocate: () => ({ block: words.allocateHost(), scope: hostScope }),
    retire: () => {},
  });
  directory.update(discoverySpec(cluster).endpoints.map((endpoint) => staticEndpoint(endpoint)!));
  const block = words.allocateCluster();

  let transportPlayed!: FakeTransport;
  const shim: Pick<NativeShim, 'createTransport'> = {
    createTransport: (options) => (transportPlayed = new FakeTransport(options, clients)),
  };
  const { timers, ...io } = openThreadIo(shim as NativeShim, {
    memory: new Memory(),
    bufferLimit: bufferLimitBytes(),
    reserve: 0,
    failed: (_what, error) => {
      process.stderr.write(`${(error as Error).stack}\n`);
      process.exit(1);
    },
  });
  const stats = new ThreadStats(store.attachment(0));
  const thread = {
    ...io,
    wheel: timers.wheel,
    random: new Random(),
    stats,
    words: new SharedWords(words.handle(1)),
    runtime: new Runtime(),
    policies: extensions,
    locality: undefined,
    localCluster: undefined,
    reportFailedCheck: () => {},
    reportOutlier: () => {},
    reportEvents: () => {},
    requestHost: () => {},
  };
  const clusters = new ClusterManager(thread);
  const scripts = new WorkerScripts({
    state: needsScripts ? publishedScripts() : undefined,
    onState: undefined,
    send: () => {},
  });
  await scripts.loading;
  const routeCounts = { of: () => undefined };
  const matchers = requestMatchers(undefined);
  const specifiers = specifiersOf(extensions, { ...thread, clusters });
  const context: WorkerContext = {
    ...thread,
    clusters,
    missingClusters: new AwaitedClusters(ports.port(MISSING_CLUSTERS_PORT), () => thread.transport.beginTurn()),
    calls: callsOf(thread, clusters, '127.0.0.1'),
    timers,
    filterConfigs: new FilterConfigs(),
    scripts,
    routeCounts,
    matchers,
    specifiers,
    routes: new RouteTables({ clusters, runtime: thread.runtime, routeCounts, specifiers }, ports.port(ON_DEMAND_PORT)),
    secrets: { generic: () => ({ value: '' }) },
    serverHealth: { isFailing: false, isFailRequested: false },
    datagrams: new DatagramAccess(shim as NativeShim, io.transport, 0),
    accessLogFiles: new AccessLogFiles(),
    extensions,
    headerBlocks: new HeaderBlockPool(io.memory),
    identity: { ip: '10.0.0.1', cluster: '', node: '', zone: '' },
    defaultTracer: undefined,
    node: {},
    port: (name) => ports.port(name),
    scope: (prefix) => stats.scope(scopes.get(prefix)!),
    tokenBucket: (_name, rate) => new OwnTokenBucket(rate),
  };
  clusters.apply({
    spec: clusterSpec(cluster, extensions),
    specVersion: 0,
    block,
    scope: clusterScope,
    http2Scope: store.addScope('cluster.up.http2.', Http2Stats),
    hosts: directory.data,
    policy: DEFAULT_ASSIGNMENT_POLICY,
    membershipVersion: 1,
  });
  const chain = listener.filter_chains![0]!;
  const start = { index: 0, workers: 1, listenersBlock: words.allocateListener(), maxConnections: undefined };
  new WorkerListeners(context, start).apply({
    id: 1,
    name: 'http',
    config: listener,
    chains: [
      {
        id: 2,
        config: chain,
        routes: packRoutes(ownRoutes(chain.filters![0]!.typed_config)!),
        isDefault: false,
        tls: undefined,
        counts: undefined,
      },
    ],
    statToken: 'http',
    block: words.allocateListener(),
    drain: undefined,
    fds: [0],
    isShared: false,
    isListening: true,
  });
  transportPlayed.firstUpstream = FIRST_CLIENT + clients;
  return transportPlayed;
}
