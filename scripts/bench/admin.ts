// The cost of large responses of the admin interface: time, size, memory, and the latency of /ready meanwhile.

import { Worker } from 'node:worker_threads';
import minimist from 'minimist';
import { CROWDS, measureCrowds } from './admin/crowd.js';
import type { Download, Downloaded } from './admin/download.js';
import {
  forgetPeak,
  get,
  peakAboveIdle,
  pollReady,
  type ReadyTimes,
  type Subject,
  sleep,
  startSubject,
} from './admin/subject.js';
import { cpuSeconds } from './processes.js';
import { describeMachine, markdown } from './report.js';
import { median, percentile } from './statistics.js';

const USAGE = `npm run bench:admin -- [options]

  --clusters=a,b   clusters of the configurations that are measured (default 7000,11200: about 1,000,000 stats)
  --rounds=N       requests of each form (default 3); times are medians, latencies are taken over all of them
  --crowds=a,b     clusters and routes of the configurations with which 200 clients ask at once (default 100,1000,10000)
  --crowd=TEXT     only what these ask for that has this in its name
`;

/** The requests, by their name in the table. */
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

interface Row extends ReadyTimes {
  form: string;
  ms: number;
  bytes: number;
  /** Of the whole process. */
  cpuMs: number;
  /** Peak above the resident size before the first request. */
  memoryBytes: number;
}

async function main(argv: string[]): Promise<void> {
  const defaults = { clusters: '7000,11200', rounds: '3', crowds: '100,1000,10000' };
  const args = minimist(argv, { string: Object.keys(defaults).concat('crowd'), default: defaults });
  if (argv.includes('--help')) return void process.stdout.write(USAGE);
  process.stdout.write(`${describeMachine([])} ${args.rounds} rounds.\n`);
  for (const clusters of numbers(args.clusters)) await measureForms(clusters, Number(args.rounds));
  const crowds = Object.keys(CROWDS).filter((name) => args.crowd === undefined || name.includes(args.crowd));
  for (const routes of numbers(args.crowds)) await measureCrowd(routes, crowds);
}

function numbers(list: string): number[] {
  return list === '' ? [] : list.split(',').map(Number);
}

async function measureForms(clusters: number, rounds: number): Promise<void> {
  const baton = await startSubject({ clusters, routes: 0 });
  try {
    await describe(baton, `${clusters} clusters`);
    const rows: Row[] = [];
    for (const [form, path] of Object.entries(FORMS)) rows.push(await measureForm(baton, form, path, rounds));
    process.stdout.write(`${table(rows)}\n`);
  } finally {
    await baton.stop();
  }
}

async function measureCrowd(routes: number, crowds: readonly string[]): Promise<void> {
  // Each client has a connection, and so does each poller of /ready.
  const baton = await startSubject({ clusters: routes, routes }, ['--admin-max-connections', '512']);
  try {
    await describe(baton, `200 clients, ${routes} clusters and routes`);
    process.stdout.write(`${await measureCrowds(baton, crowds)}\n`);
  } finally {
    await baton.stop();
  }
}

async function describe(baton: Subject, what: string): Promise<void> {
  const count = (await get(baton.port, '/stats?hidden=include')).body.split('\n').length - 1;
  const live = (baton.liveMs / 1000).toFixed(1);
  process.stdout.write(
    `\n${what}, ${count} stats: live after ${live} s, ${megabytes(baton.idleBytes)} MB resident.\n\n`,
  );
}

async function measureForm(baton: Subject, form: string, path: string, rounds: number): Promise<Row> {
  const answered: number[] = [];
  const cpus: number[] = [];
  const times: ReadyTimes = { ready: [], ran: [] };
  let bytes = 0;
  forgetPeak(baton);
  for (let round = 0; round < rounds; round++) {
    let isDone = false;
    const cpuBefore = cpuSeconds(baton.pid);
    const work = path === '' ? sleep(IDLE_MS) : download({ port: baton.port, path });
    const done = work.then((answer) => {
      isDone = true;
      return answer;
    });
    await pollReady(baton, times, () => isDone);
    const answer = await done;
    if (answer === undefined) continue;
    if (answer.status !== 200) throw new Error(`${path} was answered with ${answer.status}`);
    answered.push(answer.ms);
    cpus.push((cpuSeconds(baton.pid) - cpuBefore) * 1000);
    bytes = answer.bytes;
  }
  return { form, ms: median(answered), cpuMs: median(cpus), bytes, ...times, memoryBytes: peakAboveIdle(baton) };
}

function download(what: Download): Promise<Downloaded> {
  const worker = new Worker(new URL('admin/download.js', import.meta.url), { workerData: what });
  return new Promise((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
  });
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

main(process.argv.slice(2)).catch((error: unknown) => {
  process.stderr.write(`\nbench:admin: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
});
