// The child's end of a hot restart after the welcome: takes over when the process is live, imports the stats that the parent
// still counts, and terminates the parent after its shutdown time.
//
//   welcomed ── takeOver() ──> live ── terminate() ──> ending ──> ended
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

/** The server of a child process. */
export interface ChildHost {
  /** Called when the parent is lost before this process is live. `isRefusal`: it lives, but has refused this process. */
  parentLost(why: string, isRefusal: boolean): void;
  /** Adds the parent's counts since the last piece. */
  importStats(piece: StatsPiece): void;
  /** Number of workers that await established connections of the parent; 0: they are not requested. */
  readonly connectionWorkers: number;
  /** Takes the channels on which they arrive. The host owns the channels. */
  takeConnections(channels: readonly number[]): void;
  closeDescriptor(fd: number): void;
  /** Takes sockets of listeners that the parent has added since the welcome. The host owns them. */
  takeSockets(sockets: readonly ReceivedSockets[]): void;
  /** Called when the parent has ended, and its stats with it. */
  parentEnded(): void;
}

export interface ChildDeadlines {
  /** Interval of 'alive' messages to the parent until this process is live. */
  readonly aliveMs: number;
  /** How long a flush waits for the parent's stats. Later ones count for the next flush. */
  readonly statsMs: number;
  /** How long the parent may take to end. */
  readonly terminateMs: number;
  /** How long it may take to close its sockets, or its copies of some. */
  readonly closeMs: number;
  /** How long a parent without connections stays, to serve again if this process dies: early deaths are the most likely. */
  readonly standbyMs: number;
}

const DEADLINES: ChildDeadlines = {
  aliveMs: 2000,
  statsMs: 1000,
  terminateMs: 30_000,
  closeMs: 2000,
  standbyMs: 5000,
};

/** Descriptors per message. */
const MAX_FDS = 64;
/** Limit per kind for messages that a parent sends once or as an answer. */
const MAX_REPEATS = 100;
/** Each brings a listener that the parent has added. */
const MAX_WELCOMES = 1_000_000;
/** Per answer, 64 KiB each at most. */
const MAX_STATS_PIECES = 10_000;

const logger = getLogger('main');

export class ChildEnd implements LinkEvents<ToChild> {
  readonly #host: ChildHost;
  readonly #link: Link<ToParent>;
  readonly #deadlines: ChildDeadlines;
  /** performance.now() until which the parent stays; Infinity until that is known. */
  #standbyUntilMs = Number.POSITIVE_INFINITY;
  #timer: PatientTimeout | undefined;
  readonly #alive: NodeJS.Timeout;
  readonly #limits = new MessageLimits();
  /** Pieces of the current answer. */
  #statsPieces = 0;
  /** Received messages that a parent sends once. */
  readonly #received = new Set<ToChild['kind']>();
  readonly #sockets: SocketReceiver;
  #state: 'welcomed' | 'live' | 'ending' | 'ended' = 'welcomed';
  /** Called after the last piece of an answer, or when none will come. */
  #onStats: (() => void) | undefined;
  #isStatsPending = false;
  /** The parent's connections, as of its last answer. */
  #connections = Number.POSITIVE_INFINITY;
  /** Called when the parent has answered `live`, or will not. */
  #onReplaced: () => void = () => {};
  /** The same for each `release`, in the order of sending. */
  #released: (() => void)[] = [];

  constructor(joined: Joined, host: ChildHost, deadlines = DEADLINES) {
    this.#host = host;
    this.#link = joined.link;
    this.#deadlines = deadlines;
    this.#sockets = new SocketReceiver((fd) => host.closeDescriptor(fd));
    this.#alive = setInterval(() => this.#link.send({ kind: 'alive' }), deadlines.aliveMs).unref();
    joined.attach(this);
  }

  /** The parent still runs. */
  get hasParent(): boolean {
    return this.#state === 'live' || this.#state === 'ending';
  }

  /**
   * Sends the parent copies of sockets that were bound beside its own, before they listen. Resolves when the kernel has them: the
   * parent gets them even if this process dies.
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
   * Notifies the parent that this process serves with these of its sockets. The parent will be terminated after its shutdown
   * time. Resolves when the parent and its admin interface accept nothing any more, or take too long, or have ended.
   */
  async takeOver(taken: readonly number[], parentShutdownTimeS: number): Promise<void> {
    if (this.#state !== 'welcomed') return;
    this.#state = 'live';
    clearInterval(this.#alive);
    const replaced = new Promise<void>((resolve) => (this.#onReplaced = resolve));
    this.#link.send({ kind: 'live', taken, parentShutdownTimeS, connectionWorkers: this.#host.connectionWorkers });
    const shutdownMs = parentShutdownTimeS * 1000;
    this.#standbyUntilMs = performance.now() + Math.min(this.#deadlines.standbyMs, shutdownMs);
    this.#setTimer(shutdownMs, () => {
      logger.info('shutting down parent after drain');
      this.terminate();
    });
    await atMostMs(replaced, this.#deadlines.closeMs);
  }

  /**
   * Called before this process stops accepting on these sockets. Resolves when the parent has closed its copies; otherwise as
   * takeOver().
   */
  async release(ids: readonly number[]): Promise<void> {
    if (this.#state !== 'live' || ids.length === 0) return;
    const released = new Promise<void>((resolve) => this.#released.push(resolve));
    this.#link.send({ kind: 'release', ids });
    await atMostMs(released, this.#deadlines.closeMs);
  }

  /** Imports the parent's stats. Resolves without them when the parent is slow. */
  async refreshStats(): Promise<void> {
    if (this.#state !== 'live') return;
    // A pending answer is not awaited again: its stats are imported when it arrives.
    if (this.#isStatsPending) return;
    this.#isStatsPending = true;
    this.#link.send({ kind: 'stats-request' });
    await new Promise<void>((resolve) => {
      const deadline = new PatientTimeout(resolve, this.#deadlines.statsMs);
      this.#onStats = () => {
        deadline.clear();
        resolve();
      };
    });
  }

  /** Returns whether the parent has no connections any more, as of an answer in time, or has ended. */
  async isParentIdle(): Promise<boolean> {
    await this.refreshStats();
    return this.#state !== 'live' || this.#connections === 0;
  }

  /** Requests the parent's end. */
  terminate(): void {
    if (this.#state !== 'live') return;
    this.#state = 'ending';
    logger.info('terminating parent process');
    this.#link.send({ kind: 'terminate' });
    this.#setTimer(this.#deadlines.terminateMs, () => {
      logger.error(`the parent process has not ended in ${this.#deadlines.terminateMs / 1000} s; it is left alone`);
      this.#finish();
      this.#link.close();
    });
  }

  /** Called when this process ends. Ends the parent, too. */
  close(): void {
    this.terminate();
    this.#state = 'ended';
    this.#settle();
    this.#link.close();
  }

  message(message: ToChild, fds: readonly number[]): void {
    const isExpected = this.#expects(message);
    const max = message.kind === 'welcome' ? MAX_WELCOMES : MAX_REPEATS;
    const tooMany = isExpected && message.kind !== 'welcome' ? undefined : this.#limits.count(message.kind, max);
    if (tooMany !== undefined) {
      for (const fd of fds) this.#host.closeDescriptor(fd);
      return this.#link.fail(tooMany);
    }
    if (message.kind === 'welcome' && isExpected) {
      this.#sockets.add(message.welcome.sockets, fds);
      if (message.welcome.isLast) this.#host.takeSockets(this.#sockets.take());
      return;
    }
    if (message.kind === 'hand-over' && isExpected) {
      this.#received.add('hand-over');
      return this.#host.takeConnections(fds);
    }
    for (const fd of fds) this.#host.closeDescriptor(fd);
    if (!isExpected) return;
    switch (message.kind) {
      case 'replaced':
        this.#received.add('replaced');
        return this.#onReplaced();
      case 'released':
        return this.#released.shift()?.();
      case 'empty':
        this.#received.add('empty');
        logger.info('the parent process has no connections any more');
        return this.#setTimer(Math.max(0, this.#standbyUntilMs - performance.now()), () => this.terminate());
      case 'refusal':
        this.#finish();
        this.#link.close();
        return this.#host.parentLost(peerText(message.reason), true);
      case 'stats':
        return this.#takeStats(message.stats);
    }
  }

  /** Returns whether the message is legitimate in the current state. */
  #expects({ kind }: ToChild): boolean {
    const state = this.#state;
    switch (kind) {
      case 'welcome':
        return state === 'welcomed' || state === 'live';
      case 'hand-over':
        return this.hasParent && !this.#received.has(kind) && this.#host.connectionWorkers > 0;
      case 'empty':
        return state === 'live' && !this.#received.has(kind);
      case 'replaced':
        return this.hasParent && !this.#received.has(kind);
      case 'released':
        return this.#released.length > 0;
      case 'refusal':
        return state === 'welcomed';
      case 'stats':
        return state === 'live' || state === 'ending';
    }
  }

  /** Imports a piece of stats. The last ones arrive unrequested when the parent ends. */
  #takeStats(stats: StatsPiece): void {
    const why = 'it sent more stats than permitted, or unrequested ones';
    if (++this.#statsPieces > MAX_STATS_PIECES) return this.#link.fail(why);
    this.#host.importStats(stats);
    this.#connections = stats.connections;
    if (!stats.isLast) return;
    this.#statsPieces = 0;
    if (!this.#isStatsPending && this.#limits.count('stats', MAX_REPEATS) !== undefined) return this.#link.fail(why);
    this.#isStatsPending = false;
    this.#onStats?.();
  }

  ended(why: string): void {
    if (this.#state === 'ended') return;
    const state = this.#state;
    this.#finish();
    if (state === 'welcomed') return this.#host.parentLost(why, false);
    if (state === 'live') logger.warning(`the parent process was lost (${why}); this one keeps serving`);
    else logger.info('the parent process has ended');
  }

  /** Replaces the timer. */
  #setTimer(ms: number, callback: () => void): void {
    this.#timer?.clear();
    this.#timer = new PatientTimeout(callback, ms);
  }

  /** Settles everything that awaits the parent. */
  #settle(): void {
    this.#timer?.clear();
    clearInterval(this.#alive);
    this.#sockets.release();
    this.#onStats?.();
    this.#onReplaced();
    for (const resolve of this.#released.splice(0)) resolve();
  }

  #finish(): void {
    const hadStats = this.hasParent;
    this.#state = 'ended';
    this.#settle();
    if (hadStats) this.#host.parentEnded();
  }
}
