// Kills at random times under baton-restarter and load: SIGKILL of the new process, the old one or the wrapper; SIGSTOP of the
// new one for some seconds; bursts of signals. Any failure beyond the connections of the killed process is a defect.

import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { Random } from '../../../src/common/random.js';
import { type Teardown, waitFor } from '../../../test/e2e/harness/index.js';
import { killHolding, listensAt, TrackedLoad } from '../../../test/e2e/restart/tracked-load.js';
import { TrackedLine } from '../../../test/e2e/restarter/tracked-line.js';
import { progress } from '../report.js';
import { DEADLINE_MS } from './peer.js';

const CLIENTS = { fresh: 4, kept: 6, streams: 4 };
const ENOUGH = 100;
/** Time from the signal for a new process until a kill. */
const MAX_DELAY_MS = 4000;
const MAX_STOP_MS = 3000;
/** Rounds with one wrapper, which is then terminated or killed. */
const ROUNDS_OF_LINE = 10;

const ACTIONS = ['kill new', 'kill new', 'kill old', 'stop new', 'kill both in turn', 'SIGHUP storm'] as const;
type Action = (typeof ACTIONS)[number];

/** Runs this many kills and passes each failure to `report`. Returns the number of failures. */
export async function killAtRandom(
  t: Teardown,
  count: number,
  seed: number,
  report: (defect: string) => void,
): Promise<number> {
  const random = new Random(seed);
  let defects = 0;
  const add = (found: readonly string[], when: string) => {
    defects += found.length;
    for (const each of found) report(`${when}: ${each}`);
  };
  let done = 0;
  let lines = 0;
  while (done < count) {
    const isHandingOver = lines++ % 2 === 1;
    const line = await RandomLine.start(t, isHandingOver, random);
    for (let round = 0; round < ROUNDS_OF_LINE && done < count; round++, done++) {
      const action = ACTIONS[Math.floor(random.fraction() * ACTIONS.length)]!;
      progress(`random kills: ${done + 1} of ${count}, ${action}${isHandingOver ? '; connections handed over' : ''}`);
      const found = await line.round(action);
      add(found, `${done + 1}, ${action}${isHandingOver ? ', connections handed over' : ''}`);
      if (line.hasEnded) break;
    }
    progress(`random kills: end of line ${lines}`);
    add(await line.end(lines % 3 === 0), `end of line ${lines}`);
  }
  progress('');
  return defects;
}

class RandomLine {
  readonly #line: TrackedLine;
  readonly #load: TrackedLoad;
  readonly #random: Random;

  private constructor(line: TrackedLine, load: TrackedLoad, random: Random) {
    this.#line = line;
    this.#load = load;
    this.#random = random;
  }

  static async start(t: Teardown, isHandingOver: boolean, random: Random): Promise<RandomLine> {
    const line = await TrackedLine.start(t, isHandingOver ? '--hand-over-connections' : '', DEADLINE_MS);
    const load = new TrackedLoad(t, line.ports, CLIENTS);
    await load.answers(ENOUGH);
    return new RandomLine(line, load, random);
  }

  get hasEnded(): boolean {
    return this.#line.wrapper.process.exitCode !== null;
  }

  /** Runs one restart, with a kill during it. */
  async round(action: Action): Promise<string[]> {
    const { wrapper } = this.#line;
    const held = new Set<number>();
    let isOutage = false;
    // A process that still drains would end with its connections when the next but one takes over.
    const serving = this.#serving();
    for (const pid of this.#pids()) if (pid !== serving) await this.#kill(pid, held);
    await this.#load.answers(ENOUGH);
    const early = this.#load.takeFailures(held);
    if (early.length > 0) return early.map(({ port, why }) => `client ${port}, as an old process ended: ${why}`);
    held.clear();
    const started = this.#count('started (pid');
    wrapper.kill('SIGHUP');
    await this.#until(() => this.#count('started (pid') > started, 'a new process');
    await pause(this.#random.fraction() * MAX_DELAY_MS);
    const [newest, before] = this.#pids();
    if (action === 'kill new') isOutage = await this.#kill(newest, held);
    else if (action === 'kill old') isOutage = await this.#kill(before, held);
    else if (action === 'kill both in turn') {
      isOutage = await this.#kill(before, held);
      await pause(this.#random.fraction() * MAX_STOP_MS);
      isOutage = (await this.#kill(this.#pids()[0], held)) || isOutage;
    } else if (action === 'stop new' && newest !== undefined) {
      signal(newest, 'SIGSTOP');
      await pause(this.#random.fraction() * MAX_STOP_MS);
      signal(newest, 'SIGCONT');
    } else if (action === 'SIGHUP storm') {
      for (let count = 0; count < 50; count++) {
        wrapper.kill(count % 5 === 0 ? 'SIGUSR1' : 'SIGHUP');
        await pause(this.#random.fraction() * 5);
      }
    }
    await this.#quiet();
    await this.#load.answers(ENOUGH);
    // In a burst a process may end its predecessor's predecessor, which had connections.
    const isExcused = (isNew: boolean) => (isNew ? isOutage : action === 'SIGHUP storm');
    const failures = this.#load.takeFailures(held).filter(({ isNew }) => !isExcused(isNew));
    const found = failures.map(({ isNew, port, why }) => `client ${port}${isNew ? ', new' : ''}: ${why}`);
    if (this.hasEnded) found.push(`the wrapper ended with ${wrapper.process.exitCode}`);
    return found.length === 0 ? [] : [`${found.join('\n')}\n${wrapper.stdout.split('\n').slice(-25).join('\n')}`];
  }

  /** Ends the wrapper in an orderly way, by a burst of signals, or by SIGKILL; nothing may be left of it. */
  async end(isKilled: boolean): Promise<string[]> {
    const { wrapper } = this.#line;
    await this.#load.end();
    const pids = this.#pids();
    const found: string[] = [];
    if (isKilled) {
      wrapper.kill('SIGKILL');
    } else {
      const storm = setInterval(() => wrapper.kill('SIGTERM'), 5);
      const { code, signal: by } = await wrapper.exited;
      clearInterval(storm);
      if (code !== 0) found.push(`the wrapper ended with ${code}, ${by}`);
    }
    await waitFor(() => pids.every((pid) => !isRunning(pid)), { what: 'the end of all', deadlineMs: DEADLINE_MS });
    const left = readdirSync(wrapper.directory);
    if (!isKilled && left.length > 0) found.push(`files are left: ${left.join()}`);
    return found;
  }

  /** Returns whether no other process has the listen sockets. */
  async #kill(pid: number | undefined, held: Set<number>): Promise<boolean> {
    if (pid === undefined || !isRunning(pid)) return false;
    const { ports } = this.#line;
    const isAlone = !this.#pids().some((each) => each !== pid && listensAt(each, ports.http));
    try {
      for (const port of await killHolding(pid, ports)) held.add(port);
    } catch (error) {
      // The process has ended meanwhile.
      if (!/ENOENT|ESRCH/.test(String((error as NodeJS.ErrnoException).code))) throw error;
    }
    return isAlone;
  }

  /** Returns the process that became live last, or serves again. */
  #serving(): number | undefined {
    const { stdout } = this.#line.wrapper;
    const epoch = [...stdout.matchAll(/epoch (\d+) (?:is live|serves again)/g)].at(-1)?.[1];
    return epoch === undefined ? undefined : this.#line.pidOf(Number(epoch));
  }

  /** Waits until no process starts, and one is live. */
  async #quiet(): Promise<void> {
    let sinceMs = performance.now();
    let seen = '';
    const isQuiet = () => {
      const { stdout } = this.#line.wrapper;
      if (stdout !== seen) {
        seen = stdout;
        sinceMs = performance.now();
      }
      const outcome = /is live|serves again|never became live|died as it took over|left:/;
      const last = stdout.lastIndexOf('started (pid');
      const settled = outcome.test(stdout.slice(last)) && !/starts again in [^\n]*\n$/.test(stdout);
      return this.hasEnded || (settled && performance.now() - sinceMs > 1500);
    };
    await this.#until(isQuiet, 'quiet');
  }

  async #until(condition: () => boolean, what: string): Promise<void> {
    await waitFor(() => condition() || this.hasEnded, { what, deadlineMs: DEADLINE_MS }).catch((error: unknown) => {
      throw new Error(`${this.#line.wrapper.stdout}${this.#line.wrapper.stderr.slice(-4000)}`, { cause: error });
    });
  }

  #count(text: string): number {
    return this.#line.wrapper.stdout.split(text).length - 1;
  }

  /** Returns the IDs of running processes, the newest first. */
  #pids(): number[] {
    const { stdout } = this.#line.wrapper;
    const pids = [...stdout.matchAll(/started \(pid (\d+)\)/g)].map(([, pid]) => Number(pid));
    return pids.reverse().filter(isRunning);
  }
}

function isRunning(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return stat[stat.lastIndexOf(')') + 2] !== 'Z';
  } catch {
    return false;
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // The process has ended meanwhile.
  }
}
