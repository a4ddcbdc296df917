// What large answers of the admin interface cost: time, size, memory, and how long /ready takes meanwhile.

import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import minimist from 'minimist';
import { packagePath } from '../../src/common/package/package-root.js';
import type { Download, Downloaded } from './download.js';
import { cpuSeconds } from './processes.js';
import { describeMachine, markdown } from './report.js';
import { median, percentile } from './statistics.js';

const USAGE = `npm run bench:admin -- [options]

  --clusters=a,b   clusters of the configurations that are measured (default 7000,11200: about 1,000,000 stats)
  --rounds=N       requests of each form (default 3); times are medians, latencies are taken over all of them
`;

/** What is asked for, by its name in the table. */
const FORMS: Readonly<Record<string, string>> = {
  '(idle)': '',
  text: '/stats',
  'text, one name': '/stats?filter=^cluster.service_77.membership_total$',
  json: '/stats?format=json',
  monitoring: '/stats/monitoring',
  'monitoring, used only': '/stats/monitoring?usedonly',
  'monitoring, protobuf': '/stats/monitoring?prom_protobuf',
  'monitoring, native histograms': '/stats/monitoring?prom_protobuf&histogram_buckets=monitoringnative',
  clusters: '/clusters',
  'clusters, json': '/clusters?format=json',
  'clusters, one name': '/clusters?filter=^service_77$',
  'config dump': '/config_dump?include_eds',
  'config dump, masked': '/config_dump?resource=static_clusters&mask=cluster.name',
};

const IDLE_MS = 3000;
const POLL_MS = 2;
const START_DEADLINE_MS = 120_000;

interface Row {
  form: string;
  ms: number;
  bytes: number;
  /** Of the whole process. */
  cpuMs: number;
  ready: number[];
  /** How long the primary ran, of each of these. */
  ran: number[];
  /** Peak above what was resident before the first request. */
  memoryBytes: number;
}

async function main(argv: string[]): Promise<void> {
  const args = minimist(argv, { string: ['clusters', 'rounds'], default: { clusters: '7000,11200', rounds: '3' } });
  if (argv.includes('--help')) return void process.stdout.write(USAGE);
  process.stdout.write(`${describeMachine([])} ${args.rounds} rounds.\n`);
  for (const clusters of String(args.clusters).split(',').map(Number)) await measure(clusters, Number(args.rounds));
}

async function measure(clusters: number, rounds: number): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'baton-bench-'));
  const baton = await start(directory, clusters);
  try {
    const count = (await get(baton.port, '/stats?hidden=include')).body.split('\n').length - 1;
    process.stdout.write(
      `\n${clusters} clusters, ${count} stats: live after ${(baton.liveMs / 1000).toFixed(1)} s, ` +
        `${megabytes(baton.idleBytes)} MB resident.\n\n`,
    );
    const rows: Row[] = [];
    for (const [form, path] of Object.entries(FORMS)) rows.push(await measureForm(baton, form, path, rounds));
    process.stdout.write(`${table(rows)}\n`);
  } finally {
    baton.child.kill('SIGTERM');
    await new Promise((resolve) => baton.child.once('exit', resolve));
    rmSync(directory, { recursive: true, force: true });
  }
}

async function measureForm(baton: RunningBaton, form: string, path: string, rounds: number): Promise<Row> {
  const times: number[] = [];
  const cpus: number[] = [];
  const ready: number[] = [];
  const ran: number[] = [];
  let bytes = 0;
  forgetPeak(baton.child.pid!);
  for (let round = 0; round < rounds; round++) {
    let isDone = false;
    const cpuBefore = cpuSeconds(baton.child.pid!);
    const work = path === '' ? sleep(IDLE_MS) : download({ port: baton.port, path });
    const done = work.then((answer) => {
      isDone = true;
      return answer;
    });
    do {
      const ranBefore = primaryRanMs(baton.child.pid!);
      ready.push(await timeReady(baton.port));
      ran.push(primaryRanMs(baton.child.pid!) - ranBefore);
      await sleep(POLL_MS);
    } while (!isDone);
    const answer = await done;
    if (answer === undefined) continue;
    if (answer.status !== 200) throw new Error(`${path} was answered with ${answer.status}`);
    times.push(answer.ms);
    cpus.push((cpuSeconds(baton.child.pid!) - cpuBefore) * 1000);
    bytes = answer.bytes;
  }
  const memoryBytes = statusBytes(baton.child.pid!, 'VmHWM') - baton.idleBytes;
  return { form, ms: median(times), cpuMs: median(cpus), bytes, ready, ran, memoryBytes };
}

interface RunningBaton {
  child: ChildProcess;
  port: number;
  liveMs: number;
  idleBytes: number;
}

async function start(directory: string, clusters: number): Promise<RunningBaton> {
  const config = join(directory, 'bootstrap.json');
  const addressPath = join(directory, 'admin');
  writeFileSync(config, JSON.stringify(bootstrap(clusters)));
  const args = ['-c', config, '--disable-hot-restart', '--concurrency', '2', '--admin-address-path', addressPath];
  const begun = performance.now();
  const child = spawn(process.execPath, [packagePath('dist/baton/main.js'), ...args, '-l', 'warning'], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  process.once('exit', () => child.kill('SIGKILL'));
  for (;;) {
    await sleep(20);
    if (child.exitCode !== null || performance.now() - begun > START_DEADLINE_MS)
      throw new Error('Baton has not started');
    if (!existsSync(addressPath)) continue;
    const port = Number(readFileSync(addressPath, 'utf8').split(':').at(-1));
    if ((await get(port, '/ready')).status !== 200) continue;
    const liveMs = performance.now() - begun;
    // Two flushes later everything that is made once has been made.
    await sleep(12_000);
    return { child, port, liveMs, idleBytes: statusBytes(child.pid!, 'VmRSS') };
  }
}

/** Clusters of one host each, and nothing else. */
function bootstrap(clusters: number): unknown {
  const socket = (address: string, port_value: number) => ({ socket_address: { address, port_value } });
  return {
    admin: { address: socket('127.0.0.1', 0) },
    static_resources: {
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

const agent = new Agent({ keepAlive: true });

function get(port: number, path: string): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const asked = request({ host: '127.0.0.1', port, path, agent }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString() }));
    });
    asked.on('error', reject);
    asked.end();
  });
}

async function timeReady(port: number): Promise<number> {
  const begun = performance.now();
  await get(port, '/ready');
  return performance.now() - begun;
}

function download(what: Download): Promise<Downloaded> {
  const worker = new Worker(new URL('download.js', import.meta.url), { workerData: what });
  return new Promise((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
  });
}

/** How long the primary thread has run on a core, in milliseconds: what others do on the machine is not in it. */
function primaryRanMs(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'latin1').split(' ')[0]) / 1e6;
}

/** VmHWM counts from what is resident now. */
function forgetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5');
}

function statusBytes(pid: number, field: 'VmRSS' | 'VmHWM'): number {
  const line = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'latin1'));
  return Number(line?.[1] ?? 0) * 1024;
}

function table(rows: readonly Row[]): string {
  const header = ['answer', 'time ms', 'CPU ms', 'MB', '/ready p50 ms', 'p99 ms', 'max ms', 'p99 ran ms', 'memory MB'];
  const cells = rows.map(({ form, ms, cpuMs, bytes, ready, ran, memoryBytes }) => [
    form,
    Number.isNaN(ms) ? '' : ms.toFixed(0),
    Number.isNaN(ms) ? '' : cpuMs.toFixed(0),
    Number.isNaN(ms) ? '' : (bytes / 1e6).toFixed(1),
    percentile(ready, 0.5).toFixed(2),
    percentile(ready, 0.99).toFixed(2),
    Math.max(...ready).toFixed(1),
    percentile(ran, 0.99).toFixed(2),
    megabytes(memoryBytes),
  ]);
  return markdown(header, cells);
}

function megabytes(bytes: number): string {
  return (bytes / 1024 / 1024).toFixed(0);
}

function sleep(ms: number): Promise<undefined> {
  return new Promise((resolve) => setTimeout(() => resolve(undefined), ms));
}

main(process.argv.slice(2)).catch((error: unknown) => {
  process.stderr.write(`\nbench:admin: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
});
