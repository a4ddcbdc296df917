// Epochs of Baton with one configuration, each started when its predecessor serves.

import {
  type BatonProcess,
  type Config,
  DEFAULT_DEADLINE_MS,
  EpochLine,
  type Teardown,
  waitFor,
  withDeadline,
} from '../harness/index.js';

export interface EpochsOptions {
  config: Config;
  /** Options of all epochs, such as `--drain-time-s`. */
  args?: readonly string[];
  deadlineMs?: number;
}

export class Epochs {
  readonly #line: EpochLine;
  readonly #options: EpochsOptions;
  /** All started processes, by epoch. */
  readonly all: BatonProcess[] = [];

  constructor(t: Teardown, options: EpochsOptions) {
    this.#line = new EpochLine(t);
    this.#options = options;
  }

  /** The newest process. */
  get current(): BatonProcess {
    return this.all.at(-1)!;
  }

  /** Starts the next epoch and waits until it is live; returns the milliseconds that this took. */
  async next(concurrency: number): Promise<number> {
    const { config, args = [], deadlineMs = DEFAULT_DEADLINE_MS } = this.#options;
    const begun = performance.now();
    const all = ['--concurrency', String(concurrency), ...args];
    const old = this.all.at(-1);
    // Until it is live, the old process answers admin requests: only its state shows the take-over.
    const wait = old === undefined ? 'live' : 'spawned';
    const baton = await this.#line.start(this.all.length, { config, args: all, wait, deadlineMs });
    this.all.push(baton);
    if (old !== undefined) {
      const hasTakenOver = () => old.stderr.includes(TAKEN_OVER) && baton.hasAdminAddress;
      const isOver = () => hasTakenOver() || baton.exit !== undefined || old.exit !== undefined;
      await waitFor(isOver, { what: `epoch ${this.all.length - 1} to take over`, deadlineMs });
      if (!old.stderr.includes(TAKEN_OVER)) throw new Error(`it has not taken over:\n${baton.stderr}\n${old.stderr}`);
    }
    return performance.now() - begun;
  }

  /** Waits until the previous epoch has exited cleanly. */
  async previousExits(): Promise<void> {
    const previous = this.all.at(-2)!;
    const exit = await withDeadline(previous.exited, 'the exit of the previous epoch', this.#options.deadlineMs);
    if (exit.code !== 0) throw new Error(`it ended with ${exit.code}, ${exit.signal}:\n${previous.stderr}`);
  }
}

const TAKEN_OVER = 'closing and draining listeners';
