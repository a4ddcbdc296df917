// The cost of statistics: nanoseconds per count on a worker, adding scopes, merging, and rendering a million stats.
//
// node dist/scripts/bench/components/stats.js [clusters]

import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { CircuitBreakerStats, ClusterStats } from '../../../src/stats/layouts/cluster.js';
import { Http1CodecStats } from '../../../src/stats/layouts/http.js';
import { StatsReader, type StatsReaderAttachment } from '../../../src/stats/read/reader.js';
import { renderText } from '../../../src/stats/render/render-text.js';
import { StatsStore } from '../../../src/stats/store.js';
import { type Scope, type ScopeRef, ThreadStats, type WorkerStatsAttachment } from '../../../src/stats/thread-stats.js';
import { cpuMs } from './cpu-time.js';

const fileName = new URL(import.meta.url);

type Task =
  | { kind: 'count'; attachment: WorkerStatsAttachment; refs: ScopeRef[] }
  | { kind: 'render'; attachment: StatsReaderAttachment };

if (isMainThread) await main();
else await work(workerData as Task);

async function main(): Promise<void> {
  const clusters = Number(process.argv[2] ?? 10_600);
  const store = new StatsStore({ workers: 2 });
  const before = residentMb();
  const added = cpuMs();
  const refs: ScopeRef[] = [];
  for (let i = 0; i < clusters; i++) {
    refs.push(store.addScope(`cluster.service_${i}.`, ClusterStats));
    store.addScope(`cluster.service_${i}.http1.`, Http1CodecStats);
    store.addScope(`cluster.service_${i}.circuit_breakers.default.`, CircuitBreakerStats);
    store.addScope(`cluster.service_${i}.circuit_breakers.high.`, CircuitBreakerStats);
  }
  print(`${clusters} clusters (${4 * clusters} scopes) added`, `${since(added)} ms CPU, ${residentMb() - before} MB`);

  await inThread({ kind: 'count', attachment: store.attachment(0), refs });

  const flushed = cpuMs();
  store.flush();
  print('flush: first, all histograms changed', `${since(flushed)} ms CPU`);
  const again = cpuMs();
  store.flush();
  print('flush: intervals end', `${since(again)} ms CPU`);
  const idle = cpuMs();
  store.flush();
  print('flush: nothing changed', `${since(idle)} ms CPU`);
  const memory = residentMb();
  print('resident after counting everywhere', `${memory - before} MB above start`);
  render('primary', () => store.reader());
  print('resident after rendering on the primary', `${residentMb() - memory} MB more`);
  await inThread({ kind: 'render', attachment: store.readerAttachment() });

  const removed = cpuMs();
  for (const ref of refs) store.removeScope(ref);
  print(`${refs.length} scopes removed`, `${since(removed)} ms CPU`);
}

async function work(task: Task): Promise<void> {
  if (task.kind === 'count') count(task.attachment, task.refs);
  else render('render thread', () => new StatsReader(task.attachment));
  parentPort!.postMessage('done');
}

function count(attachment: WorkerStatsAttachment, refs: readonly ScopeRef[]): void {
  const stats = new ThreadStats(attachment);
  const scope = stats.scope(refs[0]!);
  const at = ClusterStats.at;
  const rounds = 20_000_000;
  nanoseconds('increment of a counter', rounds, (n) => {
    for (let i = 0; i < n; i++) scope.increment(at.upstream_rq_total);
  });
  nanoseconds('increment and decrement of a gauge', rounds, (n) => {
    for (let i = 0; i < n; i++) {
      scope.increment(at.upstream_rq_active);
      scope.decrement(at.upstream_rq_active);
    }
  });
  nanoseconds('record of 0 to 9 ms', rounds, (n) => {
    for (let i = 0; i < n; i++) scope.record(at.upstream_cx_connect_ms, i % 10);
  });
  nanoseconds('record of 0 to 99 ms', rounds, (n) => {
    for (let i = 0; i < n; i++) scope.record(at.upstream_cx_connect_ms, i % 100);
  });
  nanoseconds('record of 0 to 9999 ms', rounds, (n) => {
    for (let i = 0; i < n; i++) scope.record(at.upstream_cx_length_ms, i % 10_000);
  });
  const counter = stats.dynamicCounter('cluster.service_0.', 'upstream_rq_200');
  nanoseconds('increment of a counter born in traffic', rounds, (n) => {
    for (let i = 0; i < n; i++) counter.increment();
  });
  const scopes = refs.map((ref) => stats.scope(ref));
  nanoseconds('increment over all clusters in turn', rounds, (n) => spread(scopes, n));
  const started = cpuMs();
  for (const ref of refs) {
    for (const name of ['upstream_rq_200', 'upstream_rq_2xx', 'upstream_rq_completed']) {
      stats.dynamicCounter(ref.prefix, name).increment();
    }
    stats.dynamicHistogram(ref.prefix, 'upstream_rq_time').record(ref.base % 90);
    stats.scope(ref).record(at.upstream_cx_connect_ms, 1);
  }
  print(`${4 * refs.length} names born in traffic`, `${since(started)} ms CPU`);
  if (stats.dropped > 0) throw new Error(`${stats.dropped} samples were dropped`);
}

function spread(scopes: readonly Scope[], n: number): void {
  for (let i = 0; i < n; i++) scopes[i % scopes.length]!.increment(ClusterStats.at.upstream_rq_total);
}

function render(where: string, open: () => StatsReader): void {
  const before = residentMb();
  const opened = cpuMs();
  const reader = open();
  print(`${where}: directory read and sorted`, `${since(opened)} ms CPU, ${countStats(reader)} stats`);
  for (const [what, options] of [
    ['all', {}],
    ['all again', {}],
    ['filter .*upstream_rq.*', { filter: (name: string) => name.includes('upstream_rq') }],
    ['usedonly', { usedOnly: true }],
  ] as const) {
    const started = cpuMs();
    let bytes = 0;
    for (const piece of renderText(reader, options)) bytes += piece.length;
    print(`${where}: text, ${what}`, `${since(started)} ms CPU, ${(bytes / 1e6).toFixed(1)} MB`);
  }
  print(`${where}: resident`, `${residentMb() - before} MB more`);
}

function countStats(reader: StatsReader): number {
  let stats = 0;
  for (const { tables } of reader.sections) for (const table of tables) stats += table.length;
  return stats;
}

function nanoseconds(what: string, rounds: number, run: (n: number) => void): void {
  run(rounds / 10);
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 3; round++) {
    const started = process.cpuUsage();
    run(rounds);
    best = Math.min(best, process.cpuUsage(started).user);
  }
  print(what, `${((best * 1000) / rounds).toFixed(2)} ns`);
}

async function inThread(task: Task): Promise<void> {
  const worker = new Worker(fileName, { workerData: task });
  await new Promise<void>((resolve, reject) => {
    worker.once('error', reject);
    worker.once('exit', () => resolve());
  });
}

function residentMb(): number {
  return Math.round(process.memoryUsage.rss() / 1e6);
}

function since(start: number): string {
  return (cpuMs() - start).toFixed(0);
}

function print(what: string, figure: string): void {
  process.stdout.write(`${what.padEnd(46)} ${figure}\n`);
}
