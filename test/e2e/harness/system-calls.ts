// System calls of a running process that fail, as they do where the system has nothing left to give.

import { spawn, spawnSync } from 'node:child_process';
import type { Teardown } from './environment.js';

const trial = spawnSync('strace', ['-qq', '-e', 'trace=none', 'true'], { encoding: 'utf8' });

/** Why no test can do without them here; false: it can. */
export const cannotFailCalls =
  trial.status === 0 ? false : `nothing can be traced here: ${trial.stderr ?? trial.error}`;

/** From now on these calls of the process's first thread fail with the error; what is returned ends that. */
export async function failCalls(t: Teardown, pid: number, calls: string, error: string): Promise<() => Promise<void>> {
  const fault = ['-o', '/dev/null', '-e', `trace=${calls}`, '-e', `inject=${calls}:error=${error}`];
  const tracer = spawn('strace', [...fault, '-p', `${pid}`], { stdio: ['ignore', 'ignore', 'pipe'] });
  t.teardown(() => tracer.kill('SIGKILL'));
  const ended = new Promise<void>((resolve) => tracer.once('exit', () => resolve()));
  // It says so when it is attached.
  await Promise.race([ended, new Promise((resolve) => tracer.stderr.once('data', resolve))]);
  return () => {
    tracer.kill('SIGINT');
    return ended;
  };
}
