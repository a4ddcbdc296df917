// The figures as Markdown tables and as JSON.

import { execFileSync } from 'node:child_process';
import { cpus, release } from 'node:os';
import type { Footprint } from './comparison/footprint.js';
import type { Measurement } from './comparison/load.js';
import type { Workload } from './comparison/workloads.js';
import { median } from './statistics.js';

export interface WorkloadResult {
  workload: Workload;
  /** Medians over the rounds, by peer. */
  peers: Map<string, Measurement>;
}

/** Overwrites one status line if the output is a terminal. */
export function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
}

/** Returns the median of each figure over the rounds, and the sum of failures. */
export function summarize(rounds: readonly Measurement[]): Measurement {
  const of = (pick: (one: Measurement) => number): number => median(rounds.map(pick));
  return {
    perCpuSecond: of((one) => one.perCpuSecond),
    perSecond: of((one) => one.perSecond),
    cores: of((one) => one.cores),
    p50Ms: of((one) => one.p50Ms),
    p99Ms: of((one) => one.p99Ms),
    failed: rounds.reduce((sum, one) => sum + one.failed, 0),
  };
}

/** Returns machine and versions for the head of a report. */
export function describeMachine(peers: readonly string[]): string {
  const versions = [`Node ${process.versions.node}`];
  if (peers.includes('nginx')) versions.push(versionOf('nginx', '-v'));
  if (peers.includes('haproxy')) versions.push(versionOf('haproxy', '-v'));
  if (peers.includes('envoy')) versions.push('Envoy');
  const all = cpus();
  return `${all.length} × ${all[0]?.model ?? 'unknown CPU'}, Linux ${release()}; ${versions.join(', ')}.`;
}

/** Returns one row per workload and peer, with the ratios of CPU efficiency to the other peers. */
export function loadTable(results: readonly WorkloadResult[]): string {
  const references = ['nginx', 'haproxy', 'relay', 'envoy'].filter((name) =>
    results.some(({ peers }) => peers.has(name)),
  );
  const rows = results.flatMap(({ workload, peers }) =>
    [...peers].map(([name, one]) => [
      workload.name,
      name,
      workload.unit === 'MB' ? `${one.perCpuSecond.toFixed(0)} MB` : one.perCpuSecond.toFixed(0),
      workload.unit === 'MB' ? '' : (1e6 / one.perCpuSecond).toFixed(1),
      ...references.map((reference) => ratio(one, peers.get(reference), name === reference)),
      workload.unit === 'MB' ? `${one.perSecond.toFixed(0)} MB` : one.perSecond.toFixed(0),
      one.cores.toFixed(2),
      latency(one.p50Ms),
      latency(one.p99Ms),
      one.failed === 0 ? '' : String(one.failed),
    ]),
  );
  return markdown(
    [
      ...['workload', 'proxy', 'per CPU second', 'µs each', ...references.map((name) => `/${name}`)],
      ...['per second', 'cores', 'p50 ms', 'p99 ms', 'failed'],
    ],
    rows,
  );
}

/** Returns memory and startup time, one row per peer. */
export function footprintTable(footprints: ReadonlyMap<string, Footprint>): string {
  const rows = [...footprints].map(([name, one]) => [
    name,
    one.startUpMs.toFixed(0),
    megabytes(one.idleBytes),
    `${megabytes(one.connectedBytes)} (${one.connections})`,
    ((one.connectedBytes - one.idleBytes) / one.connections / 1024).toFixed(2),
    one.bytesOfTls === undefined ? '' : (one.bytesOfTls / 1024).toFixed(1),
  ]);
  return markdown(
    ['proxy', 'first answer ms', 'idle MB', 'with idle connections MB', 'KB each', 'KB each with TLS'],
    rows,
  );
}

/** Returns all results in machine-readable form. */
export function toJson(
  machine: string,
  results: readonly WorkloadResult[],
  footprints: ReadonlyMap<string, Footprint>,
): string {
  const workloads = results.map(({ workload, peers }) => ({ ...workload, peers: Object.fromEntries(peers) }));
  return `${JSON.stringify({ machine, workloads, footprints: Object.fromEntries(footprints) }, null, 2)}\n`;
}

function ratio(one: Measurement, reference: Measurement | undefined, itself: boolean): string {
  if (reference === undefined || itself) return '';
  return (one.perCpuSecond / reference.perCpuSecond).toFixed(2);
}

function latency(ms: number): string {
  return Number.isNaN(ms) ? '' : ms.toFixed(2);
}

function megabytes(bytes: number): string {
  return (bytes / 1024 / 1024).toFixed(1);
}

function versionOf(program: string, option: string): string {
  // nginx prints its version to standard error, HAProxy to standard output.
  const text = execFileSync('sh', ['-c', `${program} ${option} 2>&1`], { encoding: 'utf8' });
  return `${program} ${/\d+\.\d+\.\d+/.exec(text)?.[0] ?? '?'}`;
}

/** Returns a table whose first two columns are text, and the others figures. */
export function markdown(header: string[], rows: string[][]): string {
  const widths = header.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]!.length)));
  const line = (cells: string[]): string =>
    `| ${cells.map((cell, column) => (column < 2 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!))).join(' | ')} |`;
  const rule = widths.map((width, column) => (column < 2 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`));
  return [line(header), line(rule), ...rows.map(line)].join('\n');
}
