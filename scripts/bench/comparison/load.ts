// One measurement: wrk, or openssl s_time for resumed sessions, against one port, and the proxy's CPU time.

import { packagePath } from '../../../src/common/package/package-root.js';
import { cpuSeconds, output, spawnPinned } from '../processes.js';
import type { TlsFiles } from './certificates.js';
import type { Environment } from './environment.js';
import { portFor, type RunningPeer } from './peers/peer.js';
import { isSecure, type Workload } from './workloads.js';

export interface Measurement {
  /** Requests or megabytes, according to the workload's unit, per CPU second of the proxy's process tree. */
  perCpuSecond: number;
  /** The same per second of wall-clock time. */
  perSecond: number;
  /** Cores that the proxy kept busy; below 1, load generator or upstream were the bottleneck. */
  cores: number;
  p50Ms: number;
  p99Ms: number;
  /** Failed connections, responses other than 2xx or 3xx, timeouts. */
  failed: number;
}

/** The line that wrk.lua prints. */
interface WrkResult {
  requests: number;
  bytes: number;
  durationUs: number;
  p50Us: number;
  p99Us: number;
  failed: number;
}

/** Loads the peer for some seconds. Throws when there was no response at all. */
export async function measure(
  running: RunningPeer,
  workload: Workload,
  seconds: number,
  { cores, tls }: Environment,
): Promise<Measurement> {
  const port = portFor(workload, running.ports);
  const cpuBefore = cpuSeconds(running.pid);
  const result = await (workload.resumes
    ? resume(port, seconds, cores.load)
    : load(workload, port, seconds, cores.load, tls));
  const cpu = cpuSeconds(running.pid) - cpuBefore;
  const amount = workload.unit === 'MB' ? result.bytes / 1e6 : result.requests;
  if (amount === 0) throw new Error(`${running.peer.name} answered nothing to ${workload.name}`);
  const elapsed = result.durationUs / 1e6;
  return {
    perCpuSecond: amount / cpu,
    perSecond: amount / elapsed,
    cores: cpu / elapsed,
    p50Ms: result.p50Us / 1000,
    p99Ms: result.p99Us / 1000,
    failed: result.failed,
  };
}

async function load(
  workload: Workload,
  port: number,
  seconds: number,
  core: number,
  tls: TlsFiles,
): Promise<WrkResult> {
  const args = [
    ...['-t', '1', '-c', String(workload.connections), '-d', `${seconds}s`, '--timeout', '10s'],
    ...['-s', packagePath('scripts/bench/comparison/wrk.lua')],
    ...workload.headers.flatMap((header) => ['-H', header]),
    `${isSecure(workload) ? 'https' : 'http'}://127.0.0.1:${port}${workload.path}`,
    ...['--', String(workload.postBytes)],
  ];
  const env = { ...process.env, OPENSSL_CONF: tls.clientConfig };
  const text = await output(spawnPinned(core, 'wrk', args, { stdio: ['ignore', 'pipe', 'inherit'], env }));
  const line = text.split('\n').find((each) => each.startsWith('{'));
  if (line === undefined) throw new Error(`wrk printed no result: ${text}`);
  return JSON.parse(line) as WrkResult;
}

/** Resumes one session of TLS 1.2 again and again, with a request on each connection. */
async function resume(port: number, seconds: number, core: number): Promise<WrkResult> {
  const cipher = 'ECDHE-ECDSA-AES128-GCM-SHA256';
  const options = ['-tls1_2', '-cipher', cipher, '-reuse', '-www', '/small', '-time', String(seconds)];
  const args = ['s_time', '-connect', `127.0.0.1:${port}`, ...options];
  const text = await output(spawnPinned(core, 'openssl', args, { stdio: ['ignore', 'pipe', 'ignore'] }));
  const [, requests, real] = /(\d+) connections in (\d+) real seconds/.exec(text.split('starting').at(-1)!) ?? [];
  if (requests === undefined) throw new Error(`openssl s_time printed no result: ${text}`);
  const durationUs = Number(real) * 1e6;
  const eachUs = durationUs / Number(requests);
  return { requests: Number(requests), bytes: 0, durationUs, p50Us: eachUs, p99Us: eachUs, failed: 0 };
}
