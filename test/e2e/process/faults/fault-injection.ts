// A Baton that can be broken on command: see faults.ts.

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
  /** Lets one worker die; resolves with its index when the primary has noticed. */
  killWorker(death: Death): Promise<number>;
  /** Lets one worker throw where nobody catches it, or where a message of the primary is carried out. */
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
      { what: `a worker to die of ${death}` },
    );
    return indexes[deaths++]!;
  };
  return { baton, killWorker, disturbWorker: (stray) => writeFileSync(join(directory, stray), '') };
}
