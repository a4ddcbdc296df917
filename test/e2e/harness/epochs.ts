// Chains of hot restarts: processes that take over from each other, with a base id that no other test uses.

import { type BatonOptions, type BatonProcess, startBaton } from './baton.js';
import type { Teardown } from './environment.js';
import { waitFor } from './wait-for.js';

/** The processes that share one --socket-path. */
export class EpochLine {
  readonly socketPath: string;
  readonly #t: Teardown;

  constructor(t: Teardown, socketPath?: string) {
    this.#t = t;
    this.socketPath = socketPath ?? `@baton-test-${process.pid}-${lines++}`;
  }

  /** Starts the process of an epoch; `args` are appended. */
  start(epoch: number, options: BatonOptions): Promise<BatonProcess> {
    const own = ['--base-id', '0', '--socket-path', this.socketPath, '--restart-epoch', `${epoch}`];
    return startBaton(this.#t, { ...options, args: [...own, ...(options.args ?? [])] });
  }
}

/** Waits for a line in the log of a process; fails when the process exits first. */
export async function waitForLog(baton: BatonProcess, text: string | RegExp, deadlineMs?: number): Promise<void> {
  const has = () => (typeof text === 'string' ? baton.stderr.includes(text) : text.test(baton.stderr));
  const options = deadlineMs === undefined ? {} : { deadlineMs };
  await waitFor(() => has() || baton.exit !== undefined, { what: `${text} in the log`, ...options }).catch(() => {});
  if (!has()) throw new Error(`no ${text} in the log:\n${baton.stderr}`);
}

let lines = 0;
