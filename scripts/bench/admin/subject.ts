// The Baton whose admin interface is measured: started with a large configuration, polled for /ready, observed through /proc.

import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packagePath } from '../../../src/common/package/package-root.js';

export interface Size {
  readonly clusters: number;
  readonly routes: number;
}

export interface Subject {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly port: number;
  readonly liveMs: number;
  /** Resident before the first request. */
  readonly idleBytes: number;
  stop(): Promise<void>;
}

const START_DEADLINE_MS = 120_000;

export async function startSubject(size: Size, options: readonly string[] = []): Promise<Subject> {
  const directory = mkdtempSync(join(tmpdir(), 'baton-bench-'));
  const config = join(directory, 'bootstrap.json');
  const addressPath = join(directory, 'admin');
  writeFileSync(config, JSON.stringify(bootstrap(size)));
  const args = ['-c', config, '--disable-hot-restart', '--concurrency', '2', '--admin-address-path', addressPath];
  const begun = performance.now();
  const child = spawn(process.execPath, [packagePath('dist/baton/main.js'), ...args, '-l', 'warning', ...options], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  process.once('exit', () => child.kill('SIGKILL'));
  const stop = async () => {
    if (child.exitCode === null) {
      child.kill('SIGTERM');
      await new Promise((resolve) => child.once('exit', resolve));
    }
    rmSync(directory, { recursive: true, force: true });
  };
  for (;;) {
    await sleep(20);
    if (child.exitCode !== null || performance.now() - begun > START_DEADLINE_MS) {
      await stop();
      throw new Error('Baton has not started');
    }
    if (!existsSync(addressPath)) continue;
    const port = Number(readFileSync(addressPath, 'utf8').split(':').at(-1));
    if ((await get(port, '/ready')).status !== 200) continue;
    const liveMs = performance.now() - begun;
    // After two flushes all one-time allocations have been made.
    await sleep(12_000);
    return { child, pid: child.pid!, port, liveMs, idleBytes: statusBytes(child.pid!, 'VmRSS'), stop };
  }
}

/** Returns clusters of one host each, and a listener with one route to each of the first clusters. */
function bootstrap({ clusters, routes }: Size): unknown {
  const socket = (address: string, port_value: number) => ({ socket_address: { address, port_value } });
  return {
    admin: { address: socket('127.0.0.1', 0) },
    static_resources: {
      listeners:
        routes === 0 ? [] : [{ name: 'ingress', address: socket('127.0.0.1', 0), filter_chains: [chain(routes)] }],
      clusters: Array.from({ length: clusters }, (_, i) => ({
        name: `service_${i}`,
        type: 'STATIC',
        load_assignment: {
          cluster_name: `service_${i}`,
          endpoints: [{ lb_endpoints: [{ endpoint: { address: socket(`10.0.${(i >> 8) & 255}.${i & 255}`, 80) } }] }],
        },
      })),
    },
  };
}

function chain(routes: number): unknown {
  const filters = 'type.googleapis.com/envoy.extensions.filters';
  const manager = {
    '@type': `${filters}.network.http_connection_manager.v3.HttpConnectionManager`,
    stat_prefix: 'ingress',
    route_config: {
      name: 'local',
      virtual_hosts: [
        {
          name: 'all',
          domains: ['*'],
          routes: Array.from({ length: routes }, (_, i) => ({
            match: { prefix: `/service/${i}/` },
            route: { cluster: `service_${i}`, prefix_rewrite: '/', timeout: '3s' },
          })),
        },
      ],
    },
    http_filters: [
      { name: 'envoy.filters.http.router', typed_config: { '@type': `${filters}.http.router.v3.Router` } },
    ],
  };
  return { filters: [{ name: 'envoy.filters.network.http_connection_manager', typed_config: manager }] };
}

const agent = new Agent({ keepAlive: true });

export function get(port: number, path: string, isNewConnection = false): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, path, agent: isNewConnection ? false : agent } as const;
    const asked = request(options, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString() }));
    });
    asked.on('error', reject);
    asked.end();
  });
}

export interface ReadyTimes {
  /** Milliseconds of each /ready. */
  readonly ready: number[];
  /** CPU time of the primary during each of these, which other programs do not affect. */
  readonly ran: number[];
}

/** Requests /ready repeatedly, at least once, until `isDone`, every second time on a new connection. */
export async function pollReady({ port, pid }: Subject, times: ReadyTimes, isDone: () => boolean): Promise<void> {
  let isNewConnection = false;
  do {
    const ranBefore = primaryRanMs(pid);
    const begun = performance.now();
    await get(port, '/ready', isNewConnection);
    isNewConnection = !isNewConnection;
    times.ready.push(performance.now() - begun);
    times.ran.push(primaryRanMs(pid) - ranBefore);
    await sleep(POLL_MS);
  } while (!isDone());
}

const POLL_MS = 2;

/** Returns the CPU time of the primary thread in milliseconds. */
function primaryRanMs(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'latin1').split(' ')[0]) / 1e6;
}

/** Resets VmHWM to the current resident size. */
export function forgetPeak({ pid }: Subject): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5');
}

/** Returns the peak resident size above that before the first request. */
export function peakAboveIdle({ pid, idleBytes }: Subject): number {
  return statusBytes(pid, 'VmHWM') - idleBytes;
}

function statusBytes(pid: number, field: 'VmRSS' | 'VmHWM'): number {
  const line = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'latin1'));
  return Number(line?.[1] ?? 0) * 1024;
}

export function sleep(ms: number): Promise<undefined> {
  return new Promise((resolve) => setTimeout(() => resolve(undefined), ms));
}
