// Runs Baton until it exits, for command lines that print something and exit.

import { type BatonOptions, type Exit, startBaton, type Teardown, withDeadline } from '../../harness/index.js';

export interface Outcome extends Exit {
  stdout: string;
  stderr: string;
}

/** Starts Baton and waits until it exits on its own. */
export async function runBaton(t: Teardown, options: BatonOptions): Promise<Outcome> {
  const baton = await startBaton(t, { ...options, wait: 'spawned' });
  const exit = await withDeadline(baton.exited, 'the exit of the run');
  return { ...exit, stdout: baton.stdout, stderr: baton.stderr };
}

/** Runs many command lines, three at a time. Returns the outcomes in the order of `runs`. */
export async function runAll(t: Teardown, runs: readonly BatonOptions[]): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  const waiting = runs.entries();
  const lane = async (): Promise<void> => {
    for (const [index, options] of waiting) outcomes[index] = await runBaton(t, options);
  };
  await Promise.all([lane(), lane(), lane()]);
  return outcomes;
}
