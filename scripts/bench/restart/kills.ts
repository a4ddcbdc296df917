// Failures that clients observe when processes of a hot restart are killed under baton-restarter: the new one and the old one,
// while the new one starts, at the take-over, and while the old one drains; and the only one.

import { type Teardown, waitFor } from '../../../test/e2e/harness/index.js';
import { killHolding, TrackedLoad } from '../../../test/e2e/restart/tracked-load.js';
import { MOMENTS, TrackedLine } from '../../../test/e2e/restarter/tracked-line.js';
import { markdown, progress } from '../report.js';
import { DEADLINE_MS } from './peer.js';

type Moment = keyof typeof MOMENTS;

/** Of the killed old processes. */
export const LAST_EPOCH = 4;

const CLIENTS = { fresh: 4, kept: 6, streams: 4 };
/** Responses after which the service counts as restored. */
const ENOUGH = 200;

export interface Kill {
  readonly isHandingOver: boolean;
  readonly moment: Moment | 'alone';
  readonly victim: 'new' | 'old' | 'serving';
  readonly epoch: number;
  /** The longest time without a response on a new connection since the kill, and the same over ENOUGH responses before it. */
  readonly outageMs: number;
  readonly usualMs: number;
  /** Connections of the killed process. */
  readonly held: number;
  /** Failed requests on new connections, and other existing connections that ended. */
  readonly failedNew: number;
  readonly cut: number;
  /** The exit status of the wrapper; null while it runs. */
  readonly status: number | null;
}

/**
 * Kills processes until the old one is of a later epoch. Returns the cost of each kill, and whether no client failed while
 * another process could serve.
 */
export async function measureKills(t: Teardown, lastEpoch: number): Promise<{ kills: Kill[]; isClean: boolean }> {
  const kills: Kill[] = [];
  for (const isHandingOver of [false, true]) {
    for (const moment of Object.keys(MOMENTS) as Moment[]) {
      const line = await KillLine.start(t, isHandingOver);
      while (line.epoch <= lastEpoch) {
        progress(`kills: ${isHandingOver ? 'connections handed over, ' : ''}${moment}, epoch ${line.epoch}`);
        kills.push(await line.killNew(moment));
        kills.push(await line.killOld(moment));
      }
      kills.push(await line.killServing());
      await line.end();
    }
  }
  progress('');
  const isClean = kills.every(
    ({ failedNew, cut, status, moment }) => status === null && (moment === 'alone' || failedNew + cut === 0),
  );
  return { kills, isClean };
}

/** Returns one row per kind of kill; times are the maximum over the epochs. */
export function killsTable(kills: readonly Kill[]): string {
  const groups = new Map<string, Kill[]>();
  for (const kill of kills) {
    const { isHandingOver, moment, victim } = kill;
    const when = moment === 'drains' ? 'the old one drains' : `the new one ${moment}`;
    const what = moment === 'alone' ? 'the only one' : `the ${victim} one, as ${when}`;
    const name = `${what}${isHandingOver ? '; connections handed over' : ''}`;
    groups.set(name, [...(groups.get(name) ?? []), kill]);
  }
  const rows = [...groups].map(([name, group]) => {
    const sum = (pick: (kill: Kill) => number) => String(group.reduce((all, kill) => all + pick(kill), 0));
    const most = (pick: (kill: Kill) => number) => Math.max(...group.map(pick)).toFixed(0);
    return [
      name,
      [...new Set(group.map(({ epoch }) => epoch))].sort((a, b) => a - b).join(', '),
      most(({ outageMs }) => outageMs),
      most(({ usualMs }) => usualMs),
      sum(({ held }) => held),
      sum(({ failedNew }) => failedNew),
      sum(({ cut }) => cut),
      group.every(({ status }) => status === null) ? 'lives' : group.map(({ status }) => status).join(', '),
    ];
  });
  return markdown(
    [
      ...['killed', 'epochs', 'longest outage ms', 'the same before', 'connections it held'],
      ...['failed new requests', 'others cut', 'wrapper'],
    ],
    rows,
  );
}

/** Baton under the wrapper, with clients. */
class KillLine {
  /** The serving process. */
  epoch = 0;
  readonly #line: TrackedLine;
  readonly #load: TrackedLoad;
  readonly #isHandingOver: boolean;

  private constructor(line: TrackedLine, load: TrackedLoad, isHandingOver: boolean) {
    this.#line = line;
    this.#load = load;
    this.#isHandingOver = isHandingOver;
  }

  static async start(t: Teardown, isHandingOver: boolean): Promise<KillLine> {
    const line = await TrackedLine.start(t, isHandingOver ? '--hand-over-connections' : '', DEADLINE_MS);
    const load = new TrackedLoad(t, line.ports, CLIENTS);
    await load.answers(ENOUGH);
    return new KillLine(line, load, isHandingOver);
  }

  /** Kills the new one. Afterwards the old one serves, or the next new one, which the wrapper has started. */
  killNew(moment: Moment): Promise<Kill> {
    const epoch = this.epoch + 1;
    return this.#kill({ moment, victim: 'new', epoch }, async (times) => {
      if (moment === 'starts') return this.#logs(`epoch ${epoch} never became live`);
      await this.#line.live(epoch, times + 1);
      // Its old process is killed next, while it drains.
      if (moment !== 'drains') this.epoch = epoch;
    });
  }

  /** Kills the old one. Afterwards the new one serves. */
  async killOld(moment: Moment): Promise<Kill> {
    const { epoch } = this;
    // A process that still drains would end with its connections when the next one takes over.
    if (moment === 'takes over') {
      const held = await killHolding(this.#line.pidOf(epoch - 1), this.#line.ports);
      await this.#load.answers(ENOUGH);
      const others = this.#load.takeFailures(held);
      if (others.length > 0) throw new Error(`failures beside those of an old process: ${JSON.stringify(others)}`);
    }
    return this.#kill({ moment, victim: 'old', epoch }, async () => {
      await this.#line.live(epoch + 1);
      this.epoch = epoch + 1;
    });
  }

  /** Kills the only serving process. */
  killServing(): Promise<Kill> {
    const { epoch } = this;
    const before = this.#line.count('epoch 0 started');
    return this.#kill({ moment: 'alone', victim: 'serving', epoch }, () => this.#line.live(0, before + 1));
  }

  async end(): Promise<void> {
    await this.#load.end();
    const status = await this.#line.wrapper.end();
    if (status !== 0) throw new Error(`the wrapper ended with ${status}:\n${this.#line.wrapper.stdout}`);
  }

  /** `settled` gets the number of starts of the epoch so far, and resolves when the expected process serves. */
  async #kill(
    { moment, victim, epoch }: Pick<Kill, 'moment' | 'victim' | 'epoch'>,
    settled: (times: number) => Promise<void>,
  ): Promise<Kill> {
    const load = this.#load;
    load.takeLongestGapMs();
    await load.answers(ENOUGH);
    const usualMs = load.takeLongestGapMs();
    const earlier = load.takeFailures();
    if (earlier.length > 0) throw new Error(`failures before a kill: ${JSON.stringify(earlier)}`);
    // A drain that was seen before continues.
    if (moment !== 'alone' && !(moment === 'drains' && victim === 'old')) await this.#line.next(moment);
    const times = this.#line.count(`epoch ${epoch} started`);
    const held = await killHolding(this.#line.pidOf(epoch), this.#line.ports);
    load.takeLongestGapMs();
    await settled(times);
    await load.answers(ENOUGH);
    const outageMs = load.takeLongestGapMs();
    const failures = load.takeFailures(held);
    const failedNew = failures.filter(({ isNew }) => isNew).length;
    return {
      ...{ isHandingOver: this.#isHandingOver, moment, victim, epoch, outageMs, usualMs, failedNew },
      held: held.size,
      cut: failures.length - failedNew,
      status: this.#line.wrapper.process.exitCode,
    };
  }

  async #logs(text: string): Promise<void> {
    const { wrapper } = this.#line;
    await waitFor(() => wrapper.stdout.includes(text), { what: text, deadlineMs: DEADLINE_MS });
  }
}
