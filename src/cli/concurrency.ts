// The default number of workers, from hardware, CPU affinity and the cgroup's CPU limit.

import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { loadShim } from '../io/shim.js';
import { OPTIONS } from './options.js';

/** Inputs of the calculation, which tests replace. */
export interface Machine {
  /** Hardware threads; 0 if unknown. */
  readonly threads: number;
  /** CPUs in the affinity mask. */
  readonly allowed: number;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Returns the text of a file, or undefined if it cannot be read. */
  readonly read: (path: string) => string | undefined;
}

/** Returns the number of workers to run: the requested number (at least 1), or the default for the machine. */
export function workerCount(requested: number | undefined, machine: Machine = thisMachine()): number {
  return requested === undefined ? defaultConcurrency(machine) : Math.max(1, requested);
}

/** Returns min(hardware threads, affinity, cgroup limit rounded down), at least 1 and at most the maximum of --concurrency. */
export function defaultConcurrency(machine: Machine): number {
  const limit = isCgroupIgnored(machine.environment) ? undefined : cgroupCpuLimit(machine.read);
  const { allowed, threads } = machine;
  return Math.max(1, Math.min(threads || allowed, allowed, limit ?? allowed, OPTIONS.concurrency.max));
}

function thisMachine(): Machine {
  return {
    threads: cpus().length,
    allowed: loadShim().allowedProcessors(),
    environment: process.env,
    read: (path) => {
      try {
        return readFileSync(path, 'utf8');
      } catch {
        return undefined;
      }
    },
  };
}

function isCgroupIgnored(environment: Machine['environment']): boolean {
  return ['PROXY_CGROUP_CPU_DETECTION', 'ENVOY_CGROUP_CPU_DETECTION'].some(
    (name) => environment[name]?.toLowerCase() === 'false',
  );
}

/** Returns the CPU limit of the process's own cgroup, rounded down, at least 1; undefined without a limit. */
function cgroupCpuLimit(read: Machine['read']): number | undefined {
  const groups = (read('/proc/self/cgroup') ?? '').split('\n').map((line) => line.split(':'));
  const mounts = (read('/proc/self/mountinfo') ?? '').split('\n').flatMap(readMount);
  const v1 = groups.find(([, controllers]) => controllers?.split(',').includes('cpu'));
  const v1Mount = mounts.find(({ type, options }) => type === 'cgroup' && options.split(',').includes('cpu'));
  if (v1 && v1Mount) {
    const folder = folderOf(v1Mount, v1.slice(2).join(':'));
    return ratio(read(`${folder}/cpu.cfs_quota_us`), read(`${folder}/cpu.cfs_period_us`));
  }
  const v2 = groups.find(([hierarchy, controllers]) => hierarchy === '0' && controllers === '');
  const v2Mount = mounts.find(({ type }) => type === 'cgroup2');
  if (!v2 || !v2Mount) return undefined;
  const [quota, period] = (read(`${folderOf(v2Mount, v2.slice(2).join(':'))}/cpu.max`) ?? '').trim().split(/\s+/);
  return ratio(quota, period);
}

interface Mount {
  readonly root: string;
  readonly point: string;
  readonly type: string;
  readonly options: string;
}

/** Parses a line of mountinfo: `id parent dev root point options optional… - type source superoptions`. */
function readMount(line: string): Mount[] {
  const [head, tail] = line.split(' - ');
  const [, , , root, point] = head?.split(' ') ?? [];
  const [type, , options] = tail?.split(' ') ?? [];
  if (root === undefined || point === undefined || type === undefined) return [];
  return [{ root, point: unescapeMount(point), type, options: options ?? '' }];
}

/** Decodes the octal escapes that mountinfo uses for spaces and other characters. */
function unescapeMount(path: string): string {
  return path.replace(/\\([0-7]{3})/g, (_all, code: string) => String.fromCharCode(Number.parseInt(code, 8)));
}

/** Returns the directory of a cgroup's files. A mount may show only a part of the hierarchy. */
function folderOf(mount: Mount, group: string): string {
  const isWithin = group === mount.root || group.startsWith(`${mount.root}/`);
  const inside = isWithin ? group.slice(mount.root.length) : group;
  return `${mount.point}${inside === '/' ? '' : inside}`;
}

function ratio(quota: string | undefined, period: string | undefined): number | undefined {
  const [allowed, of] = [quota, period].map((text) => (/^\s*\d+\s*$/.test(text ?? '') ? Number(text) : 0));
  return allowed! > 0 && of! > 0 ? Math.max(1, Math.floor(allowed! / of!)) : undefined;
}
