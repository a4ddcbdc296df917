// Processes of a benchmark: pinned to a core, measured through /proc, and ended with the benchmark in any case.

import { type ChildProcess, execFileSync, type StdioOptions, spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

/** Cores: the proxy under test has one to itself, everything else shares another. */
export interface Cores {
  proxy: number;
  load: number;
}

export interface SpawnOptions {
  stdio?: StdioOptions;
  env?: NodeJS.ProcessEnv;
  cwd?: string;
}

const running = new Map<number, ChildProcess>();
process.once('exit', killAll);
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, () => process.exit(130));
}

/** Starts a process in its own process group on one core. */
export function spawnPinned(
  core: number,
  command: string,
  args: readonly string[],
  { stdio = ['ignore', 'ignore', 'inherit'], cwd, env }: SpawnOptions = {},
): ChildProcess {
  const child = spawn('taskset', ['-c', String(core), command, ...args], {
    stdio,
    cwd,
    ...(env && { env }),
    detached: true,
  });
  const { pid } = child;
  if (pid === undefined) throw new Error('taskset (util-linux) could not be started');
  running.set(pid, child);
  return child;
}

/** Terminates a process, then kills it, and waits until its whole group has ended. */
export async function end(child: ChildProcess): Promise<void> {
  const pid = child.pid!;
  if (child.exitCode === null && child.signalCode === null) {
    const gone = new Promise((resolve) => child.once('exit', resolve));
    const insist = setTimeout(() => killGroup(pid), 5000);
    child.kill('SIGTERM');
    await gone;
    clearTimeout(insist);
  }
  killGroup(pid);
  running.delete(pid);
}

/** Runs a program and returns its output. Throws when it fails. */
export async function output(child: ChildProcess): Promise<string> {
  let text = '';
  child.stdout!.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  running.delete(child.pid!);
  if (code !== 0) throw new Error(`${child.spawnargs.join(' ')} ended with status ${code}: ${text}`);
  return text;
}

/** Returns the CPU seconds, user and system, of a process and its running descendants, including ended threads. */
export function cpuSeconds(pid: number): number {
  let ticks = 0;
  for (const each of tree(pid)) {
    const stat = readFileSync(`/proc/${each}/stat`, 'latin1');
    // The name in parentheses may contain spaces; utime and stime are the 12th and 13th field after it.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    ticks += Number(fields[11]) + Number(fields[12]);
  }
  return ticks / clockTicks;
}

/** Returns the resident bytes of a process and its descendants. */
export function residentBytes(pid: number): number {
  let kilobytes = 0;
  for (const each of tree(pid)) {
    const line = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${each}/status`, 'latin1'));
    kilobytes += Number(line?.[1] ?? 0);
  }
  return kilobytes * 1024;
}

/** Returns two of the cores on which this process may run. */
export function chooseCores(): Cores {
  const status = readFileSync('/proc/self/status', 'latin1');
  const allowed = /^Cpus_allowed_list:\s+(.*)$/m
    .exec(status)![1]!
    .split(',')
    .flatMap((part) => {
      const [first, last = first] = part.split('-').map(Number);
      return Array.from({ length: last! - first! + 1 }, (_, index) => first! + index);
    });
  if (allowed.length < 2)
    throw new Error('the benchmark needs two cores: one for the proxy, one for load and upstream');
  return { proxy: allowed[1]!, load: allowed[0]! };
}

/** Returns the maximum number of descriptors of a process. */
export function descriptorLimit(): number {
  const line = /^Max open files\s+\S+\s+(\S+)/m.exec(readFileSync('/proc/self/limits', 'latin1'));
  return line?.[1] === 'unlimited' ? 1 << 20 : Number(line?.[1] ?? 1024);
}

const clockTicks = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));

function tree(root: number): number[] {
  const pids = [root];
  for (let index = 0; index < pids.length; index++) {
    const pid = pids[index]!;
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      const children = readFileSync(`/proc/${pid}/task/${thread}/children`, 'latin1').trim();
      if (children !== '') pids.push(...children.split(' ').map(Number));
    }
  }
  return pids;
}

function killAll(): void {
  for (const pid of running.keys()) killGroup(pid);
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // ESRCH: the group has no process left.
  }
}
