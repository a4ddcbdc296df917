// A Baton with injectable faults: see faults.ts.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type BatonOptions,
  type BatonProcess,
  startBaton,
  type Teardown,
  tempDir,
  UNBUNDLED,
  waitFor,
} from '../../harness/index.js';
import type { Death, Stray } from './faults.js';

export interface BreakableBaton {
  baton: BatonProcess;
  /** Kills one worker; resolves with its index when the primary has noticed. */
  killWorker(death: Death): Promise<number>;
  /** Makes one worker throw an uncaught exception, or throw in the handler of a message from the primary. */
  disturbWorker(stray: Stray): void;
}

export async function startBreakableBaton(t: Teardown, options: BatonOptions): Promise<BreakableBaton> {
  const directory = tempDir(t);
  const baton = await startBaton(t, {
    ...options,
    program: UNBUNDLED,
    nodeArgs: ['--import', new URL('./faults.js', import.meta.url).href, ...(options.nodeArgs ?? [])],
    env: { ...options.env, BATON_TEST_FAULTS: directory },
  });
  let deaths = 0;
  const killWorker = async (death: Death): Promise<number> => {
    writeFileSync(join(directory, death), '');
    const indexes = await waitFor(
      () => {
        const all = [...baton.stderr.matchAll(/\[critical\].* worker (\d+) died/g)];
        return all.length > deaths && all.map((match) => Number(match[1]));
      },
      { what: `the death of a worker by ${death}` },
    );
    return indexes[deaths++]!;
  };
  return { baton, killWorker, disturbWorker: (stray) => writeFileSync(join(directory, stray), '') };
}
