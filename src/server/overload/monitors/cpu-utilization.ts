// envoy.resource_monitors.cpu_utilization: the processor time of the machine, or of the cgroup, in relation to what it has.

import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import type { ResourceMonitor } from './monitor.js';
import { readNumber, readSmallFile } from './read-file.js';

/** Weight of a new measurement, as in Envoy. */
const NEW_WEIGHT = 0.05;

/** Two counters that only grow: their increases give the utilization. */
export interface CpuTimes {
  readonly used: number;
  readonly available: number;
}

export class CpuUtilization implements ResourceMonitor {
  readonly #times: () => CpuTimes;
  #last: CpuTimes;
  #utilization = 0;

  /** Throws an Error when the times cannot be read. */
  constructor(times: () => CpuTimes) {
    this.#times = times;
    this.#last = times();
  }

  read(): number {
    const before = this.#last;
    const now = this.#times();
    this.#last = now;
    const available = now.available - before.available;
    const used = now.used - before.used;
    if (used < 0 || available <= 0) throw new Error('the times of the processors have not grown');
    const current = Math.min(1, used / available);
    this.#utilization = current * NEW_WEIGHT + this.#utilization * (1 - NEW_WEIGHT);
    return this.#utilization;
  }
}

/** Returns the times of all processors of the machine. */
export function hostTimes(): CpuTimes {
  const fields = /^cpu +([\d ]+)$/m.exec(readSmallFile('/proc/stat'))?.[1]?.split(' ').map(Number);
  if (fields === undefined || fields.length < 4) throw new Error('/proc/stat has no line of all processors');
  const [user, nice, system] = fields as [number, number, number];
  return { used: user + nice + system, available: fields.reduce((sum, each) => sum + each, 0) };
}

/** Returns the source of the times of the cgroup, of version 2 or 1. Throws an Error outside of a cgroup. */
export function containerTimes(nowMs: () => number, root = '/sys/fs/cgroup'): () => CpuTimes {
  const stat = `${root}/cpu.stat`;
  const account = ['cpu,cpuacct', 'cpuacct', 'cpu'].map((name) => `${root}/${name}/cpuacct.usage`).find(existsSync);
  let availableMs = 0;
  let lastMs = nowMs();
  const grow = (cores: number) => {
    const ms = nowMs();
    availableMs += (ms - lastMs) * cores;
    lastMs = ms;
    return availableMs;
  };
  if (existsSync(stat)) {
    return () => {
      const micros = /^usage_usec (\d+)$/m.exec(readSmallFile(stat))?.[1];
      if (micros === undefined) throw new Error(`${stat} has no usage_usec`);
      return { used: Number(micros) / 1000, available: grow(coresOf(root)) };
    };
  }
  if (account === undefined) throw new Error('no supported cgroup CPU implementation found');
  return () => ({
    used: readNumber(account) / 1e6,
    available: grow(readNumber(`${root}/cpu/cpu.shares`) / SHARES_PER_CORE),
  });
}

const SHARES_PER_CORE = 1024;

/** Returns how many cores a cgroup of version 2 may use. */
function coresOf(root: string): number {
  const path = `${root}/cpu.max`;
  const all = availableParallelism();
  if (!existsSync(path)) return all;
  const [quota, period] = readSmallFile(path).trim().split(' ');
  if (quota === 'max') return all;
  const cores = Number(quota) / Number(period);
  if (!(cores > 0)) throw new Error(`${path} is not a quota`);
  return Math.min(all, cores);
}
