// One measurement: wrk, h2load for HTTP/2, or openssl s_time for resumed sessions, against one port, and the proxy's CPU time.

import { packagePath } from '../../../src/common/package/package-root.js';
import { cpuSeconds, output, spawnPinned } from '../processes.js';
import type { Environment } from './environment.js';
import { portFor, type RunningPeer } from './peers/peer.js';
import { hasTls, isHttp2, type Workload } from './workloads.js';

export interface Measurement {
  /** Requests or megabytes, according to the workload's unit, per CPU second of the proxy's process tree. */
  perCpuSecond: number;
  /** The same per second of wall-clock time. */
  perSecond: number;
  /** Cores that the proxy kept busy; below 1, load generator or upstream were the bottleneck. */
  cores: number;
  /** NaN: the load generator does not print it. */
  p50Ms: number;
  p99Ms: number;
  /** Failed connections, responses other than 2xx or 3xx, timeouts. */
  failed: number;
}

/** The line that wrk.lua prints; of other load generators, what they print of it. */
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
  environment: Environment,
): Promise<Measurement> {
  const port = portFor(workload, running.ports);
  const cpuBefore = cpuSeconds(running.pid);
  const result = await generatorFor(workload)(workload, port, seconds, environment);
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

type Generator = (workload: Workload, port: number, seconds: number, environment: Environment) => Promise<WrkResult>;

function generatorFor(workload: Workload): Generator {
  if (workload.resumes) return resume;
  return isHttp2(workload) ? loadHttp2 : load;
}

async function load(
  workload: Workload,
  port: number,
  seconds: number,
  { cores, tls }: Environment,
): Promise<WrkResult> {
  const args = [
    ...['-t', '1', '-c', String(workload.connections), '-d', `${seconds}s`, '--timeout', '10s'],
    ...['-s', packagePath('scripts/bench/comparison/wrk.lua')],
    ...workload.headers.flatMap((header) => ['-H', header]),
    `${hasTls(workload) ? 'https' : 'http'}://127.0.0.1:${port}${workload.path}`,
    ...['--', String(workload.postBytes)],
  ];
  const env = { ...process.env, OPENSSL_CONF: tls.clientConfig };
  const text = await output(spawnPinned(cores.load, 'wrk', args, { stdio: ['ignore', 'pipe', 'inherit'], env }));
  const line = text.split('\n').find((each) => each.startsWith('{'));
  if (line === undefined) throw new Error(`wrk printed no result: ${text}`);
  return JSON.parse(line) as WrkResult;
}

async function loadHttp2(
  workload: Workload,
  port: number,
  seconds: number,
  { cores, grpcBodies, tls }: Environment,
): Promise<WrkResult> {
  const { connections, path, protocol, streams } = workload;
  const isGrpc = protocol === 'grpc';
  const headers = isGrpc ? ['content-type: application/grpc', 'te: trailers'] : workload.headers;
  const args = [
    ...['-t', '1', '-c', String(connections), '-m', String(streams), '-D', String(seconds)],
    ...headers.flatMap((header) => ['-H', header]),
    ...(isGrpc ? ['-d', grpcBodies[path]!] : []),
    `${hasTls(workload) ? 'https' : 'http'}://127.0.0.1:${port}${path}`,
  ];
  const env = { ...process.env, OPENSSL_CONF: tls.clientConfig };
  const text = await output(spawnPinned(cores.load, 'h2load', args, { stdio: ['ignore', 'pipe', 'inherit'], env }));
  const numberBefore = (word: string): number => Number(new RegExp(`(\\d+) ${word}`).exec(text)?.[1] ?? Number.NaN);
  const [requests, bytes] = [numberBefore('2xx'), Number(/\((\d+)\) data/.exec(text)?.[1])];
  if (Number.isNaN(requests)) throw new Error(`h2load printed no result: ${text}`);
  const failed = numberBefore('failed') + numberBefore('4xx') + numberBefore('5xx');
  const unknown = { p50Us: Number.NaN, p99Us: Number.NaN };
  return { requests, bytes, durationUs: seconds * 1e6, failed, ...unknown };
}

/** Resumes one session of TLS 1.2 again and again, with a request on each connection. */
async function resume(_: Workload, port: number, seconds: number, { cores }: Environment): Promise<WrkResult> {
  const cipher = 'ECDHE-ECDSA-AES128-GCM-SHA256';
  const options = ['-tls1_2', '-cipher', cipher, '-reuse', '-www', '/small', '-time', String(seconds)];
  const args = ['s_time', '-connect', `127.0.0.1:${port}`, ...options];
  const text = await output(spawnPinned(cores.load, 'openssl', args, { stdio: ['ignore', 'pipe', 'ignore'] }));
  const [, requests, real] = /(\d+) connections in (\d+) real seconds/.exec(text.split('starting').at(-1)!) ?? [];
  if (requests === undefined) throw new Error(`openssl s_time printed no result: ${text}`);
  const durationUs = Number(real) * 1e6;
  const eachUs = durationUs / Number(requests);
  return { requests: Number(requests), bytes: 0, durationUs, p50Us: eachUs, p99Us: eachUs, failed: 0 };
}
