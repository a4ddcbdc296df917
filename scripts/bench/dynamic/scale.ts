// A large configuration by a management server (one aggregated delta stream): the time until it serves, and updates while clients send
// requests, with Baton and, where ENVOY is set, with Envoy.

import { Agent, createServer, get, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { bootstrap, type Config, httpListener } from '../../../test/e2e/harness/bootstrap.js';
import { type ControlPlane, startControlPlane } from '../../../test/e2e/harness/control-plane.js';
import { startBaton, type Teardown, waitFor } from '../../../test/e2e/harness/index.js';
import { cpuSeconds, residentBytes } from '../processes.js';
import { markdown } from '../report.js';
import { percentile } from '../statistics.js';

const CLUSTERS = 10_000;
const ENDPOINTS_EACH = 10;
/** Routes that lead to the first clusters, one each. */
const ROUTES = 1000;
const UPDATES_A_MINUTE = 120;
const CLIENTS = 8;
const PAUSE_MS = 5;
const LOADING_DEADLINE_MS = 120_000;
const VERSION = 'x-version';

type Updated = 'endpoints' | 'cluster' | 'route';
const UPDATED: readonly Updated[] = ['endpoints', 'cluster', 'route'];

interface Result {
  readonly loadingSeconds: number;
  readonly loadingCpuSeconds: number;
  readonly loadedBytes: number;
  readonly bytesAfterUpdates: number;
  /** From the change of a resource to its acknowledgement, in ms. */
  readonly acknowledgedMs: Readonly<Record<Updated, number[]>>;
  /** From the change of a route to the first response that shows it, in ms. */
  readonly visibleMs: readonly number[];
  readonly requestMs: readonly number[];
  readonly failed: number;
}

/** Returns the table. `seconds`: how long updates are sent to each program. */
export async function measureScale(t: Teardown, seconds: number): Promise<string> {
  const origin = await startOrigin();
  t.teardown(() => void origin.close());
  const { port } = origin.address() as AddressInfo;
  const programs: [name: string, command: string | undefined][] = [['Baton', undefined]];
  if (process.env['ENVOY']) programs.push(['Envoy', process.env['ENVOY']]);
  const rows: string[][] = [];
  for (const [name, command] of programs) {
    const scoped = new Scope();
    try {
      rows.push([name, ...describe(await measure(scoped, command, port, seconds))]);
    } finally {
      await scoped.end();
    }
  }
  return markdown(HEADER, rows);
}

/** The teardown of one program. */
class Scope implements Teardown {
  readonly #actions: (() => unknown)[] = [];

  teardown(action: () => unknown): void {
    this.#actions.unshift(action);
  }

  async end(): Promise<void> {
    for (const action of this.#actions) await action();
  }
}

async function measure(t: Teardown, command: string | undefined, origin: number, seconds: number): Promise<Result> {
  const plane = await startControlPlane(t);
  const clusters = Array.from({ length: CLUSTERS }, (_, index) => clusterOf(index, 1));
  plane.set('cluster', clusters);
  plane.set(
    'endpoints',
    clusters.map((_, index) => endpointsOf(index, origin, 1)),
  );
  plane.set('listener', [httpListener('main', 0, MANAGER)]);
  plane.set('route', [routesOf(0)]);
  const started = performance.now();
  const proxy = await startBaton(t, {
    command,
    args: ['--concurrency', '1', '-l', 'error'],
    config: bootstrap({ listeners: [], clusters: [plane.cluster()], extra: plane.ads('delta') }),
  });
  await waitFor(async () => (await proxy.admin('/ready')).status === 200, {
    what: 'all clusters ready',
    deadlineMs: LOADING_DEADLINE_MS,
  });
  const loadingSeconds = (performance.now() - started) / 1000;
  const loadingCpuSeconds = cpuSeconds(proxy.pid);
  const loadedBytes = residentBytes(proxy.pid);
  const port = await proxy.listenerPort('main');
  const clients = new Clients(port);
  const acknowledgedMs = { endpoints: [], cluster: [], route: [] } as Record<Updated, number[]>;
  const visibleMs: number[] = [];
  const everyMs = 60_000 / UPDATES_A_MINUTE;
  const begun = performance.now();
  for (let update = 1; performance.now() - begun < seconds * 1000; update++) {
    const type = UPDATED[update % UPDATED.length]!;
    const index = (update * 7919) % CLUSTERS;
    const resource = {
      endpoints: () => endpointsOf(index, origin, 2),
      cluster: () => clusterOf(index, 2),
      route: () => routesOf(update),
    };
    const mark = plane.requests.length;
    const sent = performance.now();
    plane.change(type, resource[type]());
    // As control planes do: Envoy's new cluster waits for endpoints.
    if (type === 'cluster') plane.change('endpoints', endpointsOf(index, origin, 3));
    await Promise.all([
      acknowledged(plane, type, mark).then(() => acknowledgedMs[type].push(performance.now() - sent)),
      type === 'route' && shown(port, update).then(() => visibleMs.push(performance.now() - sent)),
    ]);
    const pauseMs = begun + update * everyMs - performance.now();
    if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  await clients.end();
  const { failed, ms: requestMs } = clients;
  const bytesAfterUpdates = residentBytes(proxy.pid);
  return {
    loadingSeconds,
    loadingCpuSeconds,
    loadedBytes,
    bytesAfterUpdates,
    acknowledgedMs,
    visibleMs,
    requestMs,
    failed,
  };
}

const ADS = { resource_api_version: 'V3', ads: {} };
const MANAGER = { stat_prefix: 'main', rds: { route_config_name: 'all', config_source: ADS } };

function clusterOf(index: number, generation: number): Config {
  return {
    name: `c${index}`,
    type: 'EDS',
    connect_timeout: `${generation}s`,
    eds_cluster_config: { eds_config: ADS },
  };
}

function endpointsOf(index: number, port: number, weight: number): Config {
  const lb_endpoints = Array.from({ length: ENDPOINTS_EACH }, (_, host) => {
    const number = index * ENDPOINTS_EACH + host;
    const address = `127.${1 + (number >> 16)}.${(number >> 8) & 255}.${number & 255}`;
    return {
      endpoint: { address: { socket_address: { address, port_value: port } } },
      load_balancing_weight: host === 0 ? weight : 1,
    };
  });
  return { cluster_name: `c${index}`, endpoints: [{ lb_endpoints }] };
}

function routesOf(version: number): Config {
  const routes = Array.from({ length: ROUTES }, (_, index) => ({
    match: { prefix: `/c${index}/` },
    route: { cluster: `c${index}` },
  }));
  const response_headers_to_add = [{ header: { key: VERSION, value: `${version}` } }];
  return { name: 'all', virtual_hosts: [{ name: 'all', domains: ['*'], routes }], response_headers_to_add };
}

async function acknowledged(plane: ControlPlane, type: Updated, mark: number): Promise<void> {
  const isIt = () => plane.requests.slice(mark).some((request) => request.type === type && request.nonce !== '');
  await soon(`the update of ${type} acknowledged`, isIt);
}

async function shown(port: number, version: number): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  await soon('the update of the routes in use', async () => (await request(port, '/c1/', agent)) === `${version}`);
  agent.destroy();
}

const DEADLINE_MS = 30_000;

/** Polls more often than waitFor(): the time is measured. */
async function soon(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + DEADLINE_MS;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`not within ${DEADLINE_MS} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

/** Clients that request random clusters without an end. */
class Clients {
  readonly ms: number[] = [];
  failed = 0;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #all: Promise<unknown>;
  #isOver = false;

  constructor(port: number) {
    this.#all = Promise.all(Array.from({ length: CLIENTS }, (_, client) => this.#run(port, client)));
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#all;
    this.#agent.destroy();
  }

  async #run(port: number, client: number): Promise<void> {
    for (let count = client; !this.#isOver; count += CLIENTS) {
      const began = performance.now();
      const version = await request(port, `/c${(count * 31) % ROUTES}/`, this.#agent);
      this.ms.push(performance.now() - began);
      if (version === undefined) this.failed++;
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }
}

/** Returns the version in the response; undefined: it failed. */
function request(port: number, path: string, agent: Agent): Promise<string | undefined> {
  return new Promise((resolve) => {
    get({ port, path, agent, host: '127.0.0.1' }, (response) => {
      response.resume();
      response.once('end', () => resolve(response.statusCode === 200 ? String(response.headers[VERSION]) : undefined));
      response.once('error', () => resolve(undefined));
    }).once('error', () => resolve(undefined));
  });
}

/** Listens on all addresses of 127.0.0.0/8. */
function startOrigin(): Promise<Server> {
  const server = createServer((_, response) => void response.end('ok'));
  server.keepAliveTimeout = 0;
  return new Promise((resolve) => server.listen(0, '0.0.0.0', () => resolve(server)));
}

const HEADER = [
  ...['program', 'loaded after s', 'CPU s', 'MB', 'MB after updates'],
  ...['endpoints acknowledged ms p50, p99', 'cluster', 'route', 'route in use', 'requests', 'p99 ms', 'failed'],
];

function describe(result: Result): string[] {
  const { acknowledgedMs: acknowledged, requestMs } = result;
  return [
    result.loadingSeconds.toFixed(1),
    result.loadingCpuSeconds.toFixed(1),
    megabytes(result.loadedBytes),
    megabytes(result.bytesAfterUpdates),
    ...[acknowledged.endpoints, acknowledged.cluster, acknowledged.route, result.visibleMs].map(middleAndTail),
    String(requestMs.length),
    percentile(requestMs, 0.99).toFixed(1),
    String(result.failed),
  ];
}

function middleAndTail(ms: readonly number[]): string {
  return `${percentile(ms, 0.5).toFixed(0)}, ${percentile(ms, 0.99).toFixed(0)}`;
}

function megabytes(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(0);
}
