// The effect of clients that occupy a worker's memory: requests whose heads never end, and clients that do not read.

import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, createServer, request } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import minimist from 'minimist';
import { packagePath } from '../../src/common/package/package-root.js';
import { residentBytes } from './processes.js';
import { percentile } from './statistics.js';

const USAGE = `npm run bench:memory -- [options] [-- options of Baton]

  --half-heads=N    clients that stop in the middle of a head (default 10000)
  --half-kb=N       what each has sent of it (default 17)
  --requests=N      whole requests beside them, with heads of 17 to 60 KB (default 5000)
  --at-once=N       of those (default 200)
  --slow-readers=N  clients that ask for 4 MB and take nothing (default 1000)
  --program=PATH    another Baton, to compare with

One worker. It needs two descriptors a client, so ulimit -n above twice the clients.
`;

const HEAD_TIMEOUT_S = 60;
const DEADLINE_MS = 60_000;
const DOWNLOAD_BYTES = 4 * 1024 * 1024;
/** Connects in flight: a listener's backlog is limited. */
const CONNECTING = 200;

interface Running {
  readonly child: ChildProcess;
  readonly admin: number;
  readonly port: number;
}

async function main(argv: string[]): Promise<void> {
  const args = minimist(argv, {
    '--': true,
    default: { 'half-heads': 10_000, 'half-kb': 17, requests: 5000, 'at-once': 200, 'slow-readers': 1000 },
  });
  if (argv.includes('--help')) return void process.stdout.write(USAGE);
  const directory = mkdtempSync(join(tmpdir(), 'baton-bench-'));
  const download = Buffer.alloc(DOWNLOAD_BYTES, 'x');
  const upstream = createServer({ maxHeaderSize: 128 * 1024, keepAliveTimeout: 60_000 }, (incoming, outgoing) => {
    outgoing.end(incoming.url === '/download' ? download : 'ok');
  });
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
  const options = (args['--'] ?? []).map(String);
  const baton = await start(directory, (upstream.address() as AddressInfo).port, args.program, options);
  try {
    await requests(baton, 200, 20);
    report(baton, 'idle');
    await halfHeads(baton, args['half-heads'], args['half-kb'], args.requests, args['at-once']);
    await slowReaders(baton, args['slow-readers']);
  } finally {
    baton.child.kill('SIGTERM');
    await new Promise((resolve) => baton.child.once('exit', resolve));
    rmSync(directory, { recursive: true, force: true });
    upstream.close();
    upstream.closeAllConnections();
  }
}

async function halfHeads(baton: Running, count: number, kilobytes: number, whole: number, atOnce: number) {
  if (count === 0) return;
  const head = `GET / HTTP/1.1\r\nhost: half\r\nx-long: ${'a'.repeat(kilobytes * 1024)}`;
  const closed = { answers: new Map<string, number>() };
  const sockets = await openAll(baton.port, count, (socket) => {
    socket.write(head);
    socket.once('data', (chunk: Buffer) => count1(closed.answers, chunk.toString('latin1', 9, 12)));
  });
  report(baton, `${count} half heads of ${kilobytes} KB`);
  const begun = performance.now();
  const { statuses, times } = await requests(baton, whole, atOnce);
  const ms = performance.now() - begun;
  line(`${whole} requests with heads of 17 to 60 KB beside them, ${atOnce} at once: ${ms.toFixed(0)} ms`, {
    ...Object.fromEntries(statuses),
    'p50 ms': percentile(times, 0.5).toFixed(1),
    'p99 ms': percentile(times, 0.99).toFixed(1),
  });
  line('half heads that were answered meanwhile', Object.fromEntries(closed.answers));
  report(baton, 'then');
  await showStats(baton);
  for (const socket of sockets) socket.destroy();
  await waitWhileResident(baton);
  await showStats(baton);
}

async function slowReaders(baton: Running, count: number) {
  if (count === 0) return;
  const sockets = await openAll(baton.port, count, (socket) => {
    socket.pause();
    socket.write('GET /download HTTP/1.1\r\nhost: slow\r\n\r\n');
  });
  await sleep(5000);
  report(baton, `${count} readers that take nothing of ${DOWNLOAD_BYTES >> 20} MB`);
  await showStats(baton);
  for (const socket of sockets) socket.destroy();
  await waitWhileResident(baton);
}

/** Returns how far the resident memory decreases after a burst. */
async function waitWhileResident(baton: Running) {
  for (let seconds = 0; seconds <= 30; seconds += 10) {
    await sleep(seconds === 0 ? 500 : 10_000);
    report(baton, `${seconds} s after they have gone`);
  }
}

/** Returns the statuses of `count` requests with heads of 17 to 60 KB, and their duration. */
async function requests(baton: Running, count: number, atOnce: number) {
  const agent = new Agent({ keepAlive: true, maxSockets: atOnce });
  const statuses = new Map<string, number>();
  const times: number[] = [];
  let next = 0;
  const serve = async () => {
    while (next < count) {
      const bytes = 17 * 1024 + ((next++ * 7919) % (42 * 1024));
      const begun = performance.now();
      const status = await get(baton.port, agent, '/', bytes).catch((error: Error) => error.message);
      count1(statuses, String(status));
      times.push(performance.now() - begun);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, serve));
  agent.destroy();
  return { statuses, times };
}

async function get(port: number, agent: Agent, path: string, headBytes: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { 'x-long': 'b'.repeat(headBytes) };
    const asked = request({ host: '127.0.0.1', port, path, agent, headers }, (response) => {
      response.resume();
      response.once('end', () => resolve(response.statusCode ?? 0));
    });
    asked.once('error', reject);
    asked.end();
  });
}

async function openAll(port: number, count: number, use: (socket: Socket) => void): Promise<Socket[]> {
  const sockets: Socket[] = [];
  const open = async () => {
    while (sockets.length < count) {
      const socket = connect(port, '127.0.0.1');
      sockets.push(socket);
      await new Promise<void>((resolve, reject) => {
        socket.once('connect', resolve);
        socket.once('error', reject);
      });
      socket.on('error', () => {});
      use(socket);
    }
  };
  await Promise.all(Array.from({ length: CONNECTING }, open));
  await sleep(1000);
  return sockets;
}

async function start(directory: string, upstream: number, program: string | undefined, options: string[]) {
  const config = join(directory, 'bootstrap.json');
  const addressPath = join(directory, 'admin');
  writeFileSync(config, JSON.stringify(bootstrap(upstream)));
  const args = ['-c', config, '--disable-hot-restart', '--concurrency', '1', '--admin-address-path', addressPath];
  const main = program ?? packagePath('dist/baton/main.js');
  const child = spawn(process.execPath, [main, ...args, '-l', 'warning', ...options], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  process.once('exit', () => child.kill('SIGKILL'));
  const begun = performance.now();
  for (;;) {
    await sleep(50);
    if (child.exitCode !== null || performance.now() - begun > DEADLINE_MS) throw new Error('Baton has not started');
    if (!existsSync(addressPath)) continue;
    const admin = Number(readFileSync(addressPath, 'utf8').split(':').at(-1));
    const listeners = await adminText(admin, '/listeners').catch(() => '');
    const port = Number(/^main::.*:(\d+)$/m.exec(listeners)?.[1] ?? 0);
    if (port > 0 && (await adminText(admin, '/ready')).startsWith('LIVE')) return { child, admin, port };
  }
}

function bootstrap(upstream: number): unknown {
  const socket = (port_value: number) => ({ socket_address: { address: '127.0.0.1', port_value } });
  const type = (name: string) => `type.googleapis.com/envoy.extensions.filters.${name}`;
  return {
    admin: { address: socket(0) },
    static_resources: {
      listeners: [
        {
          name: 'main',
          address: socket(0),
          filter_chains: [
            {
              filters: [
                {
                  name: 'http',
                  typed_config: {
                    '@type': type('network.http_connection_manager.v3.HttpConnectionManager'),
                    stat_prefix: 'main',
                    request_headers_timeout: `${HEAD_TIMEOUT_S}s`,
                    route_config: {
                      virtual_hosts: [
                        {
                          name: 'all',
                          domains: ['*'],
                          routes: [{ match: { prefix: '/' }, route: { cluster: 'host' } }],
                        },
                      ],
                    },
                    http_filters: [{ name: 'router', typed_config: { '@type': type('http.router.v3.Router') } }],
                  },
                },
              ],
            },
          ],
        },
      ],
      clusters: [
        {
          name: 'host',
          type: 'STATIC',
          circuit_breakers: {
            thresholds: [{ max_connections: 20_000, max_pending_requests: 20_000, max_requests: 20_000 }],
          },
          load_assignment: {
            cluster_name: 'host',
            endpoints: [{ lb_endpoints: [{ endpoint: { address: socket(upstream) } }] }],
          },
        },
      ],
    },
  };
}

async function adminText(port: number, path: string): Promise<string> {
  return (await fetch(`http://127.0.0.1:${port}${path}`)).text();
}

async function showStats({ admin }: Running) {
  const text = await adminText(admin, '/stats?filter=buffer_memory|main.*rx_bytes_buffered|main.*tx_bytes_buffered');
  process.stdout.write(text.replace(/^/gm, '    ').trimEnd());
  process.stdout.write('\n');
}

function report({ child }: Running, what: string) {
  line(what, { 'MB resident': (residentBytes(child.pid!) / 2 ** 20).toFixed(0) });
}

function line(what: string, values: Record<string, unknown>) {
  const all = Object.entries(values).map(([name, value]) => `${name}: ${value}`);
  process.stdout.write(`${what}: ${all.join(', ') || 'none'}\n`);
}

function count1(counts: Map<string, number>, key: string) {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

main(process.argv.slice(2)).catch((error: unknown) => {
  process.stderr.write(`\nbench:memory: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
});
