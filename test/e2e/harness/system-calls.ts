// Makes system calls of a running process fail as they do when the system runs out of a resource.

import { spawn, spawnSync } from 'node:child_process';
import type { Teardown } from './environment.js';

const trial = spawnSync('strace', ['-qq', '-e', 'trace=none', 'true'], { encoding: 'utf8' });

/** The reason why calls cannot be made to fail on this machine; false when they can. */
export const cannotFailCalls =
  trial.status === 0 ? false : `nothing can be traced here: ${trial.stderr ?? trial.error}`;

/** Makes these calls of the process's first thread fail with the error; the returned function ends that. */
export async function failCalls(t: Teardown, pid: number, calls: string, error: string): Promise<() => Promise<void>> {
  const fault = ['-o', '/dev/null', '-e', `trace=${calls}`, '-e', `inject=${calls}:error=${error}`];
  const tracer = spawn('strace', [...fault, '-p', `${pid}`], { stdio: ['ignore', 'ignore', 'pipe'] });
  t.teardown(() => tracer.kill('SIGKILL'));
  const ended = new Promise<void>((resolve) => tracer.once('exit', () => resolve()));
  // strace reports on stderr when it is attached.
  await Promise.race([ended, new Promise((resolve) => tracer.stderr.once('data', resolve))]);
  return () => {
    tracer.kill('SIGINT');
    return ended;
  };
}
