// The child's end of a hot restart, from the welcome on: it takes over when it is live, gathers what its parent still
// counts, and ends it when its time is over.
//
//   welcomed ── takeOver() ──> live ── terminate() ──> ending ──> over
//      └── parent ended: fatal    └── parent ended ────────────────^

import { PatientTimeout } from '../common/time/patient-timeout.js';
import { atMostMs } from '../common/time/within-ms.js';
import { getLogger } from '../log/logger.js';
import type { Joined } from './join-parent.js';
import type { Link, LinkEvents } from './link.js';
import { MessageLimits } from './message-limits.js';
import type { FurtherSockets, StatsPiece, ToChild, ToParent } from './messages.js';
import { peerText } from './peer-text.js';
import { type ReceivedSockets, SocketReceiver } from './received-sockets.js';

/** The server that has a parent. */
export interface ChildHost {
  /** The parent is gone before this process was live; `isGivenUp`: it lives, and wants nothing of this one any more. */
  parentLost(why: string, isGivenUp: boolean): void;
  /** What the parent has counted since the last piece. */
  importStats(piece: StatsPiece): void;
  /** How many workers wait for established connections of the parent; 0: they are not wanted. */
  readonly connectionWorkers: number;
  /** They come on these channels, which are the host's now. */
  takeConnections(channels: readonly number[]): void;
  closeDescriptor(fd: number): void;
  /** Sockets of listeners that the parent has got since it has welcomed this process; they are the host's now. */
  takeSockets(sockets: readonly ReceivedSockets[]): void;
  /** The parent is gone: what it held is nobody's any more. */
  parentEnded(): void;
}

export interface ChildDeadlines {
  /** How often the parent hears that this process is not live yet, and works at it. */
  readonly aliveMs: number;
  /** How long a flush waits for the parent's stats; what comes later counts for the next one. */
  readonly statsMs: number;
  /** How long the parent may take to end. */
  readonly terminateMs: number;
  /** How long it may take to close its sockets, or its copies of some. */
  readonly closeMs: number;
  /** How long one without connections stays to serve again if this process dies: what is broken often dies early. */
  readonly standbyMs: number;
}

const DEADLINES: ChildDeadlines = {
  aliveMs: 2000,
  statsMs: 1000,
  terminateMs: 30_000,
  closeMs: 2000,
  standbyMs: 5000,
};

/** Descriptors of one message. */
const MAX_FDS = 64;
/** Messages of a kind that a parent has reason to send once, or as an answer. */
const MAX_REPEATS = 100;
/** Each brings a listener that the parent has got meanwhile. */
const MAX_WELCOMES = 1_000_000;
/** Of one answer, 64 KiB each at most. */
const MAX_STATS_PIECES = 10_000;

const logger = getLogger('main');

export class ChildEnd implements LinkEvents<ToChild> {
  readonly #host: ChildHost;
  readonly #link: Link<ToParent>;
  readonly #deadlines: ChildDeadlines;
  /** performance.now() until which the parent stays; before it is known, for ever. */
  #standsByUntilMs = Number.POSITIVE_INFINITY;
  #timer: PatientTimeout | undefined;
  readonly #alive: NodeJS.Timeout;
  readonly #limits = new MessageLimits();
  /** Of the answer that comes. */
  #statsPieces = 0;
  /** What a parent says once. */
  readonly #said = new Set<ToChild['kind']>();
  readonly #sockets: SocketReceiver;
  #state: 'welcomed' | 'live' | 'ending' | 'over' = 'welcomed';
  /** Called when the last piece of an answer has come, or none will. */
  #answered: (() => void) | undefined;
  #isAsked = false;
  /** The parent's, as of its last answer. */
  #connections = Number.POSITIVE_INFINITY;
  /** Called when the parent has answered `live`, or will not. */
  #replaced: () => void = () => {};
  /** The same of each `release`, in the order in which they were sent. */
  #released: (() => void)[] = [];

  constructor(joined: Joined, host: ChildHost, deadlines = DEADLINES) {
    this.#host = host;
    this.#link = joined.link;
    this.#deadlines = deadlines;
    this.#sockets = new SocketReceiver((fd) => host.closeDescriptor(fd));
    this.#alive = setInterval(() => this.#link.send({ kind: 'alive' }), deadlines.aliveMs).unref();
    joined.follow(this);
  }

  /** The parent still runs. */
  get hasParent(): boolean {
    return this.#state === 'live' || this.#state === 'ending';
  }

  /**
   * Gives the parent copies of sockets that were bound beside its own, before they listen. Resolves when they are in the kernel's
   * hands: the parent gets them whatever becomes of this process.
   */
  async share(sockets: readonly FurtherSockets[], fds: readonly number[]): Promise<void> {
    if (this.#state !== 'welcomed') return;
    let from = 0;
    for (const { id, count } of sockets) {
      for (const end = from + count; from < end; ) {
        const part = fds.slice(from, Math.min(end, from + MAX_FDS));
        this.#link.send({ kind: 'further', sockets: [{ id, count: part.length }] }, part);
        from += part.length;
      }
    }
    await atMostMs(this.#link.drained(), this.#deadlines.closeMs);
  }

  /**
   * This process serves with these sockets of its parent, which is to end in a while. Resolves when the parent accepts nothing any
   * more, its admin interface neither; or takes too long, or is gone.
   */
  async takeOver(taken: readonly number[], parentShutdownTimeS: number): Promise<void> {
    if (this.#state !== 'welcomed') return;
    this.#state = 'live';
    clearInterval(this.#alive);
    const replaced = new Promise<void>((resolve) => (this.#replaced = resolve));
    this.#link.send({ kind: 'live', taken, parentShutdownTimeS, connectionWorkers: this.#host.connectionWorkers });
    const shutdownMs = parentShutdownTimeS * 1000;
    this.#standsByUntilMs = performance.now() + Math.min(this.#deadlines.standbyMs, shutdownMs);
    this.#setTimer(shutdownMs, () => {
      logger.info('shutting down parent after drain');
      this.terminate();
    });
    await atMostMs(replaced, this.#deadlines.closeMs);
  }

  /** This process is about to stop accepting at these sockets. Resolves when the parent has no copies of them; as takeOver(). */
  async release(ids: readonly number[]): Promise<void> {
    if (this.#state !== 'live' || ids.length === 0) return;
    const released = new Promise<void>((resolve) => this.#released.push(resolve));
    this.#link.send({ kind: 'release', ids });
    await atMostMs(released, this.#deadlines.closeMs);
  }

  /** Resolves when the parent's stats have been imported; without them when it is slow. */
  async refreshStats(): Promise<void> {
    if (this.#state !== 'live') return;
    // A parent that owes an answer is not waited for: it comes when it comes.
    if (this.#isAsked) return;
    this.#isAsked = true;
    this.#link.send({ kind: 'stats-request' });
    await new Promise<void>((resolve) => {
      const deadline = new PatientTimeout(resolve, this.#deadlines.statsMs);
      this.#answered = () => {
        deadline.clear();
        resolve();
      };
    });
  }

  /** Whether nobody is connected to the parent any more, as far as it has told in time, or it is gone. */
  async parentIsQuiet(): Promise<boolean> {
    await this.refreshStats();
    return this.#state !== 'live' || this.#connections === 0;
  }

  /** Tells the parent to end. */
  terminate(): void {
    if (this.#state !== 'live') return;
    this.#state = 'ending';
    logger.info('terminating parent process');
    this.#link.send({ kind: 'terminate' });
    this.#setTimer(this.#deadlines.terminateMs, () => {
      logger.error(`the parent process has not ended in ${this.#deadlines.terminateMs / 1000} s; it is left alone`);
      this.#over();
      this.#link.close();
    });
  }

  /** This process ends, and so does its parent. */
  close(): void {
    this.terminate();
    this.#state = 'over';
    this.#settle();
    this.#link.close();
  }

  message(message: ToChild, fds: readonly number[]): void {
    const isExpected = this.#expects(message);
    const max = message.kind === 'welcome' ? MAX_WELCOMES : MAX_REPEATS;
    const tooMany = isExpected && message.kind !== 'welcome' ? undefined : this.#limits.count(message.kind, max);
    if (tooMany !== undefined) {
      for (const fd of fds) this.#host.closeDescriptor(fd);
      return this.#link.giveUp(tooMany);
    }
    if (message.kind === 'welcome' && isExpected) {
      this.#sockets.add(message.welcome.sockets, fds);
      if (message.welcome.isLast) this.#host.takeSockets(this.#sockets.take());
      return;
    }
    if (message.kind === 'hand-over' && isExpected) {
      this.#said.add('hand-over');
      return this.#host.takeConnections(fds);
    }
    for (const fd of fds) this.#host.closeDescriptor(fd);
    if (!isExpected) return;
    switch (message.kind) {
      case 'replaced':
        this.#said.add('replaced');
        return this.#replaced();
      case 'released':
        return this.#released.shift()?.();
      case 'empty':
        this.#said.add('empty');
        logger.info('the parent process has no connections any more');
        return this.#setTimer(Math.max(0, this.#standsByUntilMs - performance.now()), () => this.terminate());
      case 'refusal':
        this.#over();
        this.#link.close();
        return this.#host.parentLost(peerText(message.reason), true);
      case 'stats':
        return this.#takeStats(message.stats);
    }
  }

  /** Whether there is a reason to send it. */
  #expects({ kind }: ToChild): boolean {
    const state = this.#state;
    switch (kind) {
      case 'welcome':
        return state === 'welcomed' || state === 'live';
      case 'hand-over':
        return this.hasParent && !this.#said.has(kind) && this.#host.connectionWorkers > 0;
      case 'empty':
        return state === 'live' && !this.#said.has(kind);
      case 'replaced':
        return this.hasParent && !this.#said.has(kind);
      case 'released':
        return this.#released.length > 0;
      case 'refusal':
        return state === 'welcomed';
      case 'stats':
        return state === 'live' || state === 'ending';
    }
  }

  /** The last ones come unasked, when the parent ends. */
  #takeStats(stats: StatsPiece): void {
    const why = 'it sent more stats than a process has, or without being asked';
    if (++this.#statsPieces > MAX_STATS_PIECES) return this.#link.giveUp(why);
    this.#host.importStats(stats);
    this.#connections = stats.connections;
    if (!stats.isLast) return;
    this.#statsPieces = 0;
    if (!this.#isAsked && this.#limits.count('stats', MAX_REPEATS) !== undefined) return this.#link.giveUp(why);
    this.#isAsked = false;
    this.#answered?.();
  }

  ended(why: string): void {
    if (this.#state === 'over') return;
    const state = this.#state;
    this.#over();
    if (state === 'welcomed') return this.#host.parentLost(why, false);
    if (state === 'live') logger.warning(`the parent process has gone (${why}); this one serves on`);
    else logger.info('the parent process has ended');
  }

  /** The one before does not count any more. */
  #setTimer(ms: number, callback: () => void): void {
    this.#timer?.clear();
    this.#timer = new PatientTimeout(callback, ms);
  }

  /** The parent says nothing any more. */
  #settle(): void {
    this.#timer?.clear();
    clearInterval(this.#alive);
    this.#sockets.release();
    this.#answered?.();
    this.#replaced();
    for (const resolve of this.#released.splice(0)) resolve();
  }

  #over(): void {
    const hadStats = this.hasParent;
    this.#state = 'over';
    this.#settle();
    if (hadStats) this.#host.parentEnded();
  }
}
