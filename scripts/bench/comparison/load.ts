// One measurement: wrk against one port, and the proxy's CPU time.

import { packagePath } from '../../../src/common/package/package-root.js';
import { cpuSeconds, output, spawnPinned } from '../processes.js';
import { portFor, type RunningPeer } from './peers/peer.js';
import type { Workload } from './workloads.js';

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
  core: number,
): Promise<Measurement> {
  const port = portFor(workload, running.ports);
  const args = [
    ...['-t', '1', '-c', String(workload.connections), '-d', `${seconds}s`, '--timeout', '10s'],
    ...['-s', packagePath('scripts/bench/comparison/wrk.lua')],
    ...workload.headers.flatMap((header) => ['-H', header]),
    `http://127.0.0.1:${port}${workload.path}`,
    ...['--', String(workload.postBytes)],
  ];
  const cpuBefore = cpuSeconds(running.pid);
  const text = await output(spawnPinned(core, 'wrk', args, { stdio: ['ignore', 'pipe', 'inherit'] }));
  const cpu = cpuSeconds(running.pid) - cpuBefore;
  const line = text.split('\n').find((each) => each.startsWith('{'));
  if (line === undefined) throw new Error(`wrk printed no result: ${text}`);
  const result = JSON.parse(line) as WrkResult;
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
