// The parent's end of a hot restart: one child at a time is welcomed, and takes over when it is live.
//
//   idle ── hello ──> welcomed ── Live ──> replaced ── Terminate ──> the process ends
//     ^── child ended ──┘                     │ └── the link is broken, and the child may run ──> alone ── hello ──> welcomed …
//     └───────── child ended: accepts again ──┴──────────────────────────────────────────┘
//
// Until Terminate this process keeps copies of the listen sockets, so that it can take up accepting where a dead child has left
// it, and no connection in the kernel's queues is lost. Once it has been told to end, the child's own end is no news.

import { setTimeout as pause } from 'node:timers/promises';
import { messageOf } from '../common/errors/errors.js';
import { PatientTimeout } from '../common/time/patient-timeout.js';
import { atMostMs } from '../common/time/within-ms.js';
import { getLogger } from '../log/logger.js';
import { OccasionalLog } from '../log/occasional-log.js';
import type { Link, LinkEvents } from './link.js';
import { MessageLimits } from './message-limits.js';
import type { FurtherSockets, Hello, OfferedSockets, StatsPiece, ToChild, ToParent } from './messages.js';
import { peerText } from './peer-text.js';
import { HOT_RESTART_VERSION } from './version.js';

/** Sockets to hand over; the descriptors stay this process's own. */
export interface Offer extends Omit<OfferedSockets, 'count'> {
  readonly fds: readonly number[];
}

/** The server that may get a child. */
export interface ParentHost {
  readonly epoch: number;
  readonly stage: 'initializing' | 'live' | 'ending';
  /** When the first epoch began, in milliseconds of CLOCK_MONOTONIC, which the processes of a machine share. */
  readonly firstStartedMs: number;
  readonly generation: number;
  /** --parent-shutdown-time-s of this process. */
  readonly parentShutdownTimeS: number;
  offer(): readonly Offer[];
  /** What listeners have got since the last call of the two. */
  offerMore(): readonly Offer[];
  /** Further sockets of an offer, which are the host's now: they may listen, and the child may be gone. */
  addSockets(id: number, fds: readonly number[]): void;
  /** The child that was offered them is gone before it was live. */
  childLost(): void;
  /**
   * The child serves: no connection is accepted here from now on, by the admin interface neither. Resolves when that answers nothing
   * any more; never rejects.
   */
  replaced(taken: ReadonlySet<number>): Promise<void>;
  /** The child is about to stop accepting at these: resolves when no copies are open here. */
  release(ids: ReadonlySet<number>): Promise<void>;
  /** The child that has replaced this process is dead: this one serves again. Resolves when it has all its sockets; never rejects. */
  takeBack(): Promise<void>;
  /**
   * Established connections leave on channels, for so many workers of the child: gives the child's ends, which the caller
   * closes; none when they stay. Throws for want of descriptors.
   */
  handOverConnections(childWorkers: number): readonly number[];
  /** Resolves when there are no connections any more; never if the process ends before. */
  empty(): Promise<void>;
  closeDescriptor(fd: number): void;
  /** What was counted since the last call, piece by piece. */
  exportStats(): AsyncIterable<StatsPiece>;
  /** Begins a clean exit, which calls finish(). */
  end(): void;
}

export interface ParentDeadlines {
  /** How long a child may take to become live. */
  readonly liveMs: number;
  /** How long it may say nothing meanwhile; it says that it is alive every 2 s, unless something keeps its thread busy. */
  readonly silentMs: number;
  /** The same where another process wants to take over. */
  readonly contestedSilentMs: number;
  /** How much longer than announced the child may take to say that this process is to end. */
  readonly terminateGraceMs: number;
  /** How long the last stats may take to reach the child. */
  readonly lastStatsMs: number;
  /** How soon it is tried again to hand connections over, where descriptors are short. */
  readonly handOverRetryMs: number;
}

const DEADLINES: ParentDeadlines = {
  liveMs: 900_000,
  silentMs: 60_000,
  contestedSilentMs: 8000,
  terminateGraceMs: 30_000,
  lastStatsMs: 1000,
  handOverRetryMs: 100,
};

/** Sockets that a child may add to one offer: one for each of its workers. */
const MAX_ADDED_SOCKETS = 1024;
/** At a time; a process that is refused says why itself. */
const MAX_REFUSALS_LOGGED = 10;
/** Messages of a kind that a child has reason to send once. */
const MAX_REPEATS = 100;
/** More than it sends while it may take to become live. */
const MAX_ALIVE = 10_000;
/** For each listener: it is stopped, changed, removed. */
const MAX_RELEASES = 4;
const BUSY = 'previous baton process is still initializing';
/** Work for a child that asks again and again is at most so long apart. */
const MAX_REST_MS = 1000;

/** What fits in one message. */
const MOST_FDS = 64;
const MOST_GROUPS = 32;

const logger = getLogger('main');

export class ParentEnd {
  readonly #host: ParentHost;
  readonly #deadlines: ParentDeadlines;
  #timer: PatientTimeout | undefined;
  #state: 'idle' | 'welcomed' | 'replaced' | 'ending' | 'alone' = 'idle';
  #child: Link<ToChild> | undefined;
  /** A broken link to a child that was live: its end tells that the child is gone. */
  #broken: Link<ToChild> | undefined;
  #exporting: Promise<void> | undefined;
  /** Waits for stats that it has asked for. */
  #asking: Link<ToChild> | undefined;
  /** Runs out when a child that is not live has said nothing for too long. */
  #silence: PatientTimeout | undefined;
  /** performance.now() of the last sign of life of that child. */
  #heardMs = 0;
  /** A process that takes over if that child stays silent. */
  #contender: Contender | undefined;
  /** Sockets that a dead child had not taken are bound once more: until then they could not be offered. */
  #isTakingBack = false;
  #limits = new MessageLimits();
  /** Numbers that sockets were offered under, and how many the child has added to each. */
  readonly #added = new Map<number, number>();
  readonly #released = new Set<number>();
  /** performance.now() until which a child waits for stats once more. */
  #restsUntilMs = 0;
  readonly #refusals = new OccasionalLog((text) => logger.warning(text), MAX_REFUSALS_LOGGED);
  /** The link to a child that was live is broken, and nobody has taken over since: nothing is accepted here. */
  #isAlone = false;

  constructor(host: ParentHost, deadlines = DEADLINES) {
    this.#host = host;
    this.#deadlines = deadlines;
  }

  /**
   * A process has said hello: it is welcomed, or told why it is not. While another one begins that has not been heard of for a moment, it
   * waits for what becomes of that one.
   */
  greet(hello: Hello, openLink: (events: LinkEvents<ToParent>) => Link<ToChild>): void {
    const link: Link<ToChild> = openLink({
      message: (message, fds) => {
        if (link === this.#child) this.#receive(message, fds, link);
        else this.#drop(fds);
      },
      ended: (why, isGone) => {
        if (link === this.#contender?.link) this.#settleContender(why);
        if (link !== this.#child) return link.close();
        const wasLive = this.#state === 'replaced';
        if (!isGone && wasLive) this.#breaks(link);
        else link.close();
        this.#childEnded(why, isGone);
      },
      gone: () => {
        if (link !== this.#broken) return link.close();
        this.#broken = undefined;
        this.#serveAgain();
      },
      // Only copies of sockets come with descriptors, and that a child takes over matters more.
      lost: () =>
        logger.warning('a socket of the child process cannot be kept here: this one may open too few descriptors'),
    });
    const reason = this.#whyNot(hello);
    const mayWait = this.#contender === undefined;
    if (mayWait && reason === BUSY && this.#state === 'welcomed') this.#contend(hello, link);
    else if (mayWait && reason === undefined && this.#isTakingBack) this.#contender = { hello, link, timer: undefined };
    else this.#answer(hello, link, this.#isTakingBack ? (reason ?? BUSY) : reason);
  }

  /** `reason`: why the process cannot take over. */
  #answer(hello: Hello, link: Link<ToChild>, reason: string | undefined): void {
    if (reason !== undefined) {
      this.#refusals.log(`a process of epoch ${hello.epoch} is refused: ${peerText(reason)}`);
      link.send({ kind: 'refusal', reason });
      link.close();
      return;
    }
    this.#child = link;
    this.#state = 'welcomed';
    this.#limits = new MessageLimits();
    this.#added.clear();
    this.#released.clear();
    this.#isAlive();
    this.#setTimer(this.#deadlines.liveMs, () =>
      this.#giveUpChild(`it was not live in ${this.#deadlines.liveMs / 1000} s`),
    );
    // First: from then on no connection in their queues is lost, whichever process dies.
    this.#sendSockets(link, this.#host.offer());
    logger.info(`a child process of epoch ${hello.epoch} initializes; this one serves on`);
  }

  /** There are sockets that were not there when the child was welcomed: it cannot bind to their addresses itself. */
  socketsHaveCome(): void {
    if (this.#state !== 'welcomed' || this.#child === undefined) return;
    const offers = this.#host.offerMore();
    if (offers.length > 0) this.#sendSockets(this.#child, offers);
  }

  /** The process has ended its work: a live child gets what was counted last. Resolves when it has it, or takes too long. */
  async finish(): Promise<void> {
    this.#timer?.clear();
    this.#silence?.clear();
    this.#settleContender('its parent is shutting down');
    this.#broken?.close();
    const link = this.#child;
    if (link === undefined) return;
    if (this.#state === 'replaced' || this.#state === 'ending') {
      await atMostMs(
        this.#export(link).then(() => link.drained()),
        this.#deadlines.lastStatsMs,
      );
    }
    this.#child = undefined;
    link.close();
  }

  /** A child that begins has said something, or has been welcomed. */
  #isAlive(): void {
    this.#heardMs = performance.now();
    this.#silence?.clear();
    const { silentMs } = this.#deadlines;
    this.#silence = new PatientTimeout(() => this.#giveUpChild(`it said nothing for ${silentMs / 1000} s`), silentMs);
    this.#settleContender(BUSY);
  }

  /** A process wants to take over while another one begins: if that is not heard of, it has hung, or was none. */
  #contend(hello: Hello, link: Link<ToChild>): void {
    const { contestedSilentMs } = this.#deadlines;
    const leftMs = this.#heardMs + contestedSilentMs - performance.now();
    const timer = new PatientTimeout(() => {
      this.#giveUpChild(`it said nothing for ${contestedSilentMs / 1000} s, and another process wants to take over`);
    }, leftMs);
    this.#contender = { hello, link, timer };
  }

  /** `reason`: why it cannot take over; undefined: it is seen whether it can. */
  #settleContender(reason?: string): void {
    if (this.#contender === undefined) return;
    const { hello, link, timer } = this.#contender;
    this.#contender = undefined;
    timer?.clear();
    this.#answer(hello, link, reason ?? this.#whyNot(hello));
  }

  #breaks(link: Link<ToChild>): void {
    this.#broken?.close();
    this.#broken = link;
  }

  /** The child that was live, and could not be talked to any more, is gone. */
  #serveAgain(): void {
    // What is welcomed takes over, or is lost, which ends here again.
    if (this.#state !== 'alone') return;
    this.#state = 'idle';
    this.#isAlone = false;
    this.#timer?.clear();
    logger.error('the child process that took over has gone; this one serves again');
    this.#takeBack();
  }

  #takeBack(): void {
    this.#isTakingBack = true;
    // Whatever goes wrong, the next child must not wait for ever.
    void this.#host.takeBack().finally(() => {
      this.#isTakingBack = false;
      if (this.#state !== 'welcomed') this.#settleContender();
    });
  }

  #whyNot({ version, epoch }: Hello): string | undefined {
    const { stage, epoch: own } = this.#host;
    if (version !== HOT_RESTART_VERSION) {
      return `Hot restart version mismatch! It has version ${version}, its parent ${HOT_RESTART_VERSION}`;
    }
    if (epoch !== own + 1) return `its parent has epoch ${own}: --restart-epoch ${own + 1} takes over from it`;
    if (stage === 'ending') return 'its parent is shutting down';
    const isBusy = stage === 'initializing' || this.#state === 'welcomed' || this.#state === 'replaced';
    return isBusy ? BUSY : undefined;
  }

  #sendSockets(link: Link<ToChild>, offers: readonly Offer[]): void {
    const { firstStartedMs, generation } = this.#host;
    const batches = batchesOf(offers);
    for (const { id } of offers) if (!this.#added.has(id)) this.#added.set(id, 0);
    batches.forEach(({ sockets, fds }, index) => {
      const isLast = index === batches.length - 1;
      link.send({ kind: 'welcome', welcome: { firstStartedMs, generation, sockets, isLast } }, fds);
    });
  }

  #receive(message: ToParent, fds: readonly number[], link: Link<ToChild>): void {
    const max = this.#maxOf(message);
    const tooMany = max === undefined ? undefined : this.#limits.count(message.kind, max);
    if (tooMany !== undefined) {
      this.#drop(fds);
      return link.giveUp(tooMany);
    }
    if (message.kind === 'further') return this.#addSockets(message.sockets, fds);
    this.#drop(fds);
    switch (message.kind) {
      case 'alive':
        if (this.#state === 'welcomed') this.#isAlive();
        return;
      case 'live':
        return this.#replaced(message, link);
      case 'stats-request':
        if (!this.#mayAsk) return;
        this.#asking = link;
        void this.#answerStats(link).then(() => {
          if (this.#asking === link) this.#asking = undefined;
        });
        return;
      case 'release': {
        if (this.#state !== 'replaced') return;
        const ids = message.ids.filter((id) => this.#added.has(id) && !this.#released.has(id));
        for (const id of ids) this.#released.add(id);
        void this.#host.release(new Set(ids)).then(() => {
          if (link === this.#child) link.send({ kind: 'released' });
        });
        return;
      }
      case 'terminate':
        // Before it is live, a child has nothing to say about this process.
        if (this.#state !== 'replaced') return;
        this.#state = 'ending';
        logger.warning('shutting down due to child request');
        this.#timer?.clear();
        return this.#host.end();
    }
  }

  /** How many messages of a kind a child may send; undefined: this one does not count. */
  #maxOf({ kind }: ToParent): number | undefined {
    switch (kind) {
      case 'alive':
        return MAX_ALIVE;
      case 'release':
        return MAX_RELEASES * this.#added.size + MAX_REPEATS;
      case 'further':
        return (MAX_ADDED_SOCKETS / MOST_FDS) * this.#added.size + MAX_REPEATS;
      case 'stats-request':
        // One that waits for its answer asks for nothing.
        return this.#mayAsk ? undefined : MAX_REPEATS;
      default:
        return MAX_REPEATS;
    }
  }

  get #mayAsk(): boolean {
    return (this.#state === 'replaced' || this.#state === 'ending') && this.#asking === undefined;
  }

  #replaced({ connectionWorkers, parentShutdownTimeS, taken }: ToParent & { kind: 'live' }, link: Link<ToChild>): void {
    if (this.#state !== 'welcomed') return;
    this.#state = 'replaced';
    this.#silence?.clear();
    this.#settleContender();
    this.#isAlone = false;
    this.#broken?.close();
    this.#broken = undefined;
    const waitMs = parentShutdownTimeS * 1000 + this.#deadlines.terminateGraceMs;
    this.#setTimer(waitMs, () => this.#endUnasked('the child has not said in time that this process is to end'));
    void this.#host.replaced(new Set(taken)).then(() => {
      if (link === this.#child) link.send({ kind: 'replaced' });
    });
    if (connectionWorkers > 0) this.#handOver(link, connectionWorkers);
  }

  #addSockets(sockets: readonly FurtherSockets[], fds: readonly number[]): void {
    let from = 0;
    for (const { id, count } of sockets) {
      const own = fds.slice(from, from + count);
      from += own.length;
      // Nothing was offered under a number that has none.
      const before = this.#added.get(id) ?? MAX_ADDED_SOCKETS;
      const kept = own.slice(0, MAX_ADDED_SOCKETS - before);
      this.#drop(own.slice(kept.length));
      if (kept.length === 0) continue;
      this.#added.set(id, before + kept.length);
      this.#host.addSockets(id, kept);
    }
    this.#drop(fds.slice(from));
  }

  #drop(fds: readonly number[]): void {
    for (const fd of fds) this.#host.closeDescriptor(fd);
  }

  #handOver(link: Link<ToChild>, childWorkers: number, isFirstTry = true): void {
    if (link !== this.#child) return;
    let channels: readonly number[];
    try {
      channels = this.#host.handOverConnections(childWorkers);
    } catch (error) {
      if (isFirstTry) logger.warning(`connections stay in this process for now: ${messageOf(error)}`);
      // Some descriptors become free as listeners close and connections end.
      setTimeout(() => this.#handOver(link, childWorkers, false), this.#deadlines.handOverRetryMs).unref();
      return;
    }
    if (channels.length === 0) return;
    link.send({ kind: 'hand-over' }, channels);
    void link.drained().then(() => {
      // With a copy here the end of the child would not be noticed.
      for (const fd of channels) this.#host.closeDescriptor(fd);
    });
    void this.#host.empty().then(() => {
      if (link === this.#child) link.send({ kind: 'empty' });
    });
  }

  /** After a rest as long as the last answer has taken: a child that asks without end gets half of the thread at most. */
  async #answerStats(link: Link<ToChild>): Promise<void> {
    const restMs = this.#restsUntilMs - performance.now();
    if (restMs > 0) await pause(restMs, undefined, { ref: false });
    const begunMs = performance.now();
    if (link === this.#child) await this.#export(link);
    const now = performance.now();
    this.#restsUntilMs = now + Math.min(now - begunMs, MAX_REST_MS);
  }

  /** One export at a time: each tells what was counted since the one before. */
  #export(link: Link<ToChild>): Promise<void> {
    const before = this.#exporting ?? Promise.resolve();
    const exporting = before.then(async () => {
      try {
        for await (const stats of this.#host.exportStats()) {
          link.send({ kind: 'stats', stats });
          await link.drained();
        }
      } catch (error) {
        // Connections of this process matter more: what is not told now is told with the last stats.
        logger.error({ err: error }, 'stats do not reach the child process');
      }
    });
    this.#exporting = exporting;
    return exporting;
  }

  /** The one before does not count any more. */
  #setTimer(ms: number, callback: () => void): void {
    this.#timer?.clear();
    this.#timer = new PatientTimeout(callback, ms);
  }

  /** `isGone`: its end of the link is closed, which is how a process ends; otherwise it may still run, and accept. */
  #childEnded(why: string, isGone: boolean): void {
    this.#leave(why, isGone);
    if (!this.#isTakingBack) this.#settleContender();
  }

  #leave(why: string, isGone: boolean): void {
    this.#child = undefined;
    this.#timer?.clear();
    this.#silence?.clear();
    if (this.#state === 'ending') return;
    if (this.#state === 'replaced' && isGone) {
      this.#state = 'idle';
      logger.error(`the child process that took over has gone (${why}); this one serves again`);
      return this.#takeBack();
    }
    const wasLive = this.#state === 'replaced';
    if (!wasLive) this.#host.childLost();
    const what = wasLive
      ? 'the child process cannot be talked to any more'
      : 'the child process has gone before it was live';
    if (!wasLive && !this.#isAlone) {
      this.#state = 'idle';
      logger.warning(`${what} (${why}); this one serves on`);
      return;
    }
    this.#state = 'alone';
    this.#isAlone = true;
    const seconds = this.#host.parentShutdownTimeS;
    logger.error(`${what} (${why}); this one ends in ${seconds} s`);
    this.#setTimer(seconds * 1000, () => this.#endUnasked('no other process has taken over'));
    // That one has gone while another was welcomed.
    if (!wasLive && this.#broken === undefined) this.#serveAgain();
  }

  /** It may still run, and must not go on as if this process were gone. */
  #giveUpChild(why: string): void {
    const link = this.#child;
    link?.send({ kind: 'refusal', reason: `its parent has given it up: ${why}` });
    link?.close();
    this.#childEnded(why, false);
  }

  #endUnasked(why: string): void {
    logger.warning(`shutting down: ${why}`);
    this.#host.end();
  }
}

interface Contender {
  readonly hello: Hello;
  readonly link: Link<ToChild>;
  /** Undefined: it waits for sockets. */
  readonly timer: PatientTimeout | undefined;
}

interface Batch {
  readonly sockets: OfferedSockets[];
  readonly fds: number[];
}

/** The offers in messages that are not too large; at least one. Sockets of one offer may be spread over several. */
function batchesOf(offers: readonly Offer[]): Batch[] {
  let batch: Batch = { sockets: [], fds: [] };
  const batches = [batch];
  for (const { fds, ...offer } of offers) {
    for (let from = 0; from < fds.length; ) {
      if (batch.fds.length === MOST_FDS || batch.sockets.length === MOST_GROUPS) {
        batch = { sockets: [], fds: [] };
        batches.push(batch);
      }
      const part = fds.slice(from, from + MOST_FDS - batch.fds.length);
      batch.sockets.push({ ...offer, count: part.length });
      batch.fds.push(...part);
      from += part.length;
    }
  }
  return batches;
}
