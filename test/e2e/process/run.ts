// Runs Baton to its end, for command lines that answer and leave.

import { type BatonOptions, type Exit, startBaton, type Teardown, withDeadline } from '../harness/index.js';

export interface Outcome extends Exit {
  stdout: string;
  stderr: string;
}

/** Starts Baton and waits until it has ended by itself. */
export async function runBaton(t: Teardown, options: BatonOptions): Promise<Outcome> {
  const baton = await startBaton(t, { ...options, wait: 'spawned' });
  const exit = await withDeadline(baton.exited, 'the end of a run');
  return { ...exit, stdout: baton.stdout, stderr: baton.stderr };
}
