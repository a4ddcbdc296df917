// The parent's end of a hot restart: it welcomes one child at a time, which takes over when it is live.
//
//   idle ── hello ──> welcomed ── Live ──> replaced ── Terminate ──> the process ends
//     ^── child ended ──┘                     │ └── the link is broken, and the child may run ──> alone ── hello ──> welcomed …
//     └───────── child ended: accepts again ──┴──────────────────────────────────────────┘
//
// Until Terminate this process keeps copies of the listen sockets, so that it can resume accepting after the child's death, and
// no connection in the kernel's queues is lost. After Terminate, the child's end no longer matters.

import { setTimeout as pause } from 'node:timers/promises';
import { messageOf } from '../common/errors/errors.js';
import { PatientTimeout } from '../common/time/patient-timeout.js';
import { atMostMs } from '../common/time/within-ms.js';
import { getLogger } from '../log/logger.js';
import { OccasionalLog } from '../log/occasional-log.js';
import type { TicketKeys } from '../tls/shared-ticket-keys.js';
import type { Link, LinkEvents } from './link.js';
import { MessageLimits } from './message-limits.js';
import type { FurtherSockets, Hello, OfferedSockets, StatsPiece, ToChild, ToParent } from './messages.js';
import { peerText } from './peer-text.js';
import { HOT_RESTART_VERSION } from './version.js';

/** Sockets to hand over. This process still owns the descriptors. */
export interface Offer extends Omit<OfferedSockets, 'count'> {
  readonly fds: readonly number[];
}

/** The server of a parent process. */
export interface ParentHost {
  readonly epoch: number;
  readonly stage: 'initializing' | 'live' | 'ending';
  /** When the first epoch began, in ms of CLOCK_MONOTONIC, which the processes of a machine share. */
  readonly firstStartedMs: number;
  readonly generation: number;
  /** --parent-shutdown-time-s of this process. */
  readonly parentShutdownTimeS: number;
  /** Returns the keys of session tickets; undefined without any. */
  ticketKeys(): TicketKeys | undefined;
  offer(): readonly Offer[];
  /** Returns sockets added since the last call of offer() or offerNewSockets(). */
  offerNewSockets(): readonly Offer[];
  /** Adds sockets to an offer. The host owns them: they may listen, and the child may have ended. */
  addSockets(id: number, fds: readonly number[]): void;
  /** Called when the child was lost before it was live. */
  childLost(): void;
  /**
   * Called when the child serves: this process and its admin interface accept nothing from now on. Resolves when the admin
   * interface has sent its last response; never rejects.
   */
  replaced(taken: ReadonlySet<number>): Promise<void>;
  /** Called before the child stops accepting on these sockets. Resolves when this process has closed its copies. */
  release(ids: ReadonlySet<number>): Promise<void>;
  /**
   * Called when the child that had taken over is dead: this process serves again. Resolves when it has all its sockets; never
   * rejects.
   */
  reclaim(): Promise<void>;
  /**
   * Hands established connections over to this many workers of the child. Returns the child's ends of the channels, which the
   * caller closes; none when the connections stay. Throws when descriptors are exhausted.
   */
  handOverConnections(childWorkers: number): readonly number[];
  /** Resolves when the last connection has ended; never if the process ends before that. */
  empty(): Promise<void>;
  closeDescriptor(fd: number): void;
  /** Yields the counts since the last call in pieces. */
  exportStats(): AsyncIterable<StatsPiece>;
  /** Begins a clean exit, which calls finish(). */
  end(): void;
}

export interface ParentDeadlines {
  /** How long a child may take to become live. */
  readonly liveMs: number;
  /** How long it may send nothing meanwhile. It sends 'alive' every 2 s, unless its thread is busy. */
  readonly silentMs: number;
  /** The same while another process is waiting to take over. */
  readonly contestedSilentMs: number;
  /** How much later than announced the child may terminate this process. */
  readonly terminateGraceMs: number;
  /** How long the last stats may take to reach the child. */
  readonly lastStatsMs: number;
  /** Retry delay of the hand-over after descriptors were exhausted. */
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

/** Sockets that a child may add to an offer: one for each of its workers. */
const MAX_ADDED_SOCKETS = 1024;
/** Maximum number of refusals logged per period; a refused process itself logs the reason. */
const MAX_REFUSALS_LOGGED = 10;
/** Limit per kind for messages that a child sends once. */
const MAX_REPEATS = 100;
/** Limit for 'alive' messages: more than a child sends before it must be live. */
const MAX_ALIVE = 10_000;
/** Limit for releases per listener: when it is stopped, changed, removed. */
const MAX_RELEASES = 4;
const BUSY = 'previous baton process is still initializing';
/** Maximum pause between answers to a child that requests stats continually. */
const MAX_REST_MS = 1000;

/** Limits of a message. */
const MAX_FDS = 64;
const MAX_GROUPS = 32;

const logger = getLogger('main');

export class ParentEnd {
  readonly #host: ParentHost;
  readonly #deadlines: ParentDeadlines;
  #timer: PatientTimeout | undefined;
  #state: 'idle' | 'welcomed' | 'replaced' | 'ending' | 'alone' = 'idle';
  #child: Link<ToChild> | undefined;
  /** An unusable link to a child that was live: its end shows that the child has ended. */
  #broken: Link<ToChild> | undefined;
  #exporting: Promise<void> | undefined;
  /** The link that awaits requested stats. */
  #statsRequester: Link<ToChild> | undefined;
  /** Expires when a child that is not live has sent nothing for too long. */
  #silence: PatientTimeout | undefined;
  /** performance.now() of that child's last message. */
  #heardMs = 0;
  /** A process that takes over if that child stays silent. */
  #contender: Contender | undefined;
  /** Sockets that a dead child had not taken are being bound again; until then they cannot be offered. */
  #isTakingBack = false;
  #limits = new MessageLimits();
  /** Ids of the offers, with the number of sockets that the child has added to each. */
  readonly #added = new Map<number, number>();
  readonly #released = new Set<number>();
  /** performance.now() before which no stats are sent. */
  #restsUntilMs = 0;
  readonly #refusals = new OccasionalLog((text) => logger.warning(text), MAX_REFUSALS_LOGGED);
  /** The link to a child that was live is unusable, and no process has taken over since: this process accepts nothing. */
  #isAlone = false;

  constructor(host: ParentHost, deadlines = DEADLINES) {
    this.#host = host;
    this.#deadlines = deadlines;
  }

  /**
   * Handles a hello: welcomes the process, or refuses it with a reason. If another child is initializing and has been silent for
   * a moment, the process waits for the outcome.
   */
  receiveHello(hello: Hello, openLink: (events: LinkEvents<ToParent>) => Link<ToChild>): void {
    const link: Link<ToChild> = openLink({
      message: (message, fds) => {
        if (link === this.#child) this.#receive(message, fds, link);
        else this.#drop(fds);
      },
      ended: (why, isGone) => {
        if (link === this.#contender?.link) this.#settleContender(why);
        if (link !== this.#child) return link.close();
        const wasLive = this.#state === 'replaced';
        if (!isGone && wasLive) this.#keepBroken(link);
        else link.close();
        this.#childEnded(why, isGone);
      },
      gone: () => {
        if (link !== this.#broken) return link.close();
        this.#broken = undefined;
        this.#serveAgain();
      },
      // Only copies of sockets have descriptors, and the child's takeover matters more than these.
      lost: () =>
        logger.warning('a socket of the child process cannot be kept here: this one may open too few descriptors'),
    });
    const reason = this.#refusalReason(hello);
    const mayWait = this.#contender === undefined;
    if (mayWait && reason === BUSY && this.#state === 'welcomed') this.#contend(hello, link);
    else if (mayWait && reason === undefined && this.#isTakingBack) this.#contender = { hello, link, timer: undefined };
    else this.#answer(hello, link, this.#isTakingBack ? (reason ?? BUSY) : reason);
  }

  /** Welcomes the process, or refuses it for `reason`. */
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
    this.#resetSilence();
    this.#setTimer(this.#deadlines.liveMs, () =>
      this.#abandonChild(`it was not live in ${this.#deadlines.liveMs / 1000} s`),
    );
    // The sockets are sent first: from then on no connection in their queues is lost, whichever process dies.
    this.#sendSockets(link, this.#host.offer(), this.#host.ticketKeys());
    logger.info(`a child process of epoch ${hello.epoch} initializes; this one keeps serving`);
  }

  /** Offers sockets that were added after the child was welcomed: it cannot bind their addresses itself. */
  offerNewSockets(): void {
    if (this.#state !== 'welcomed' || this.#child === undefined) return;
    const offers = this.#host.offerNewSockets();
    if (offers.length > 0) this.#sendSockets(this.#child, offers);
  }

  /** Called at the end of the process: sends a live child the last stats. Resolves when the child has them or takes too long. */
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

  /** Restarts the silence timer of an initializing child after a message or its welcome. */
  #resetSilence(): void {
    this.#heardMs = performance.now();
    this.#silence?.clear();
    const { silentMs } = this.#deadlines;
    this.#silence = new PatientTimeout(() => this.#abandonChild(`it sent nothing for ${silentMs / 1000} s`), silentMs);
    this.#settleContender(BUSY);
  }

  /** Keeps a process that can take over if the initializing child is silent, because it has hung or is not Baton. */
  #contend(hello: Hello, link: Link<ToChild>): void {
    const { contestedSilentMs } = this.#deadlines;
    const leftMs = this.#heardMs + contestedSilentMs - performance.now();
    const timer = new PatientTimeout(() => {
      this.#abandonChild(`it sent nothing for ${contestedSilentMs / 1000} s, and another process wants to take over`);
    }, leftMs);
    this.#contender = { hello, link, timer };
  }

  /** Answers the waiting process. `reason`: why it cannot take over; undefined: that is checked now. */
  #settleContender(reason?: string): void {
    if (this.#contender === undefined) return;
    const { hello, link, timer } = this.#contender;
    this.#contender = undefined;
    timer?.clear();
    this.#answer(hello, link, reason ?? this.#refusalReason(hello));
  }

  #keepBroken(link: Link<ToChild>): void {
    this.#broken?.close();
    this.#broken = link;
  }

  /** Called when a live child whose link was unusable has ended. */
  #serveAgain(): void {
    // A welcomed process takes over, or ends, which leads here again.
    if (this.#state !== 'alone') return;
    this.#state = 'idle';
    this.#isAlone = false;
    this.#timer?.clear();
    logger.error('the child process that took over has ended; this one serves again');
    this.#reclaim();
  }

  #reclaim(): void {
    this.#isTakingBack = true;
    // The next child must not wait forever, even after an error.
    void this.#host.reclaim().finally(() => {
      this.#isTakingBack = false;
      if (this.#state !== 'welcomed') this.#settleContender();
    });
  }

  #refusalReason({ version, epoch }: Hello): string | undefined {
    const { stage, epoch: own } = this.#host;
    if (version !== HOT_RESTART_VERSION) {
      return `Hot restart version mismatch! It has version ${version}, its parent ${HOT_RESTART_VERSION}`;
    }
    if (epoch !== own + 1) return `its parent has epoch ${own}: --restart-epoch ${own + 1} takes over from it`;
    if (stage === 'ending') return 'its parent is shutting down';
    const isBusy = stage === 'initializing' || this.#state === 'welcomed' || this.#state === 'replaced';
    return isBusy ? BUSY : undefined;
  }

  #sendSockets(link: Link<ToChild>, offers: readonly Offer[], ticketKeys?: TicketKeys): void {
    const { firstStartedMs, generation } = this.#host;
    const batches = batchesOf(offers);
    for (const { id } of offers) if (!this.#added.has(id)) this.#added.set(id, 0);
    batches.forEach(({ sockets, fds }, index) => {
      const isLast = index === batches.length - 1;
      const keys = index === 0 ? ticketKeys : undefined;
      link.send({ kind: 'welcome', welcome: { firstStartedMs, generation, sockets, isLast, ticketKeys: keys } }, fds);
    });
  }

  #receive(message: ToParent, fds: readonly number[], link: Link<ToChild>): void {
    const max = this.#maxOf(message);
    const tooMany = max === undefined ? undefined : this.#limits.count(message.kind, max);
    if (tooMany !== undefined) {
      this.#drop(fds);
      return link.fail(tooMany);
    }
    if (message.kind === 'further') return this.#addSockets(message.sockets, fds);
    this.#drop(fds);
    switch (message.kind) {
      case 'alive':
        if (this.#state === 'welcomed') this.#resetSilence();
        return;
      case 'live':
        return this.#replaced(message, link);
      case 'stats-request':
        if (!this.#mayRequestStats) return;
        this.#statsRequester = link;
        void this.#answerStats(link).then(() => {
          if (this.#statsRequester === link) this.#statsRequester = undefined;
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
        // A child that is not live may not end this process.
        if (this.#state !== 'replaced') return;
        this.#state = 'ending';
        logger.warning('shutting down due to child request');
        this.#timer?.clear();
        return this.#host.end();
    }
  }

  /** Returns how many messages of a kind a child may send; undefined: this one is not counted. */
  #maxOf({ kind }: ToParent): number | undefined {
    switch (kind) {
      case 'alive':
        return MAX_ALIVE;
      case 'release':
        return MAX_RELEASES * this.#added.size + MAX_REPEATS;
      case 'further':
        return (MAX_ADDED_SOCKETS / MAX_FDS) * this.#added.size + MAX_REPEATS;
      case 'stats-request':
        // A child that awaits an answer has no reason for a request.
        return this.#mayRequestStats ? undefined : MAX_REPEATS;
      default:
        return MAX_REPEATS;
    }
  }

  get #mayRequestStats(): boolean {
    return (this.#state === 'replaced' || this.#state === 'ending') && this.#statsRequester === undefined;
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
    this.#setTimer(waitMs, () => this.#endAlone('the child has not terminated this process in time'));
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
      // Unknown ids were not offered.
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
      // Descriptors become free as listeners close and connections end.
      setTimeout(() => this.#handOver(link, childWorkers, false), this.#deadlines.handOverRetryMs).unref();
      return;
    }
    if (channels.length === 0) return;
    link.send({ kind: 'hand-over' }, channels);
    void link.drained().then(() => {
      // With a copy here the child's end would not be detected.
      for (const fd of channels) this.#host.closeDescriptor(fd);
    });
    void this.#host.empty().then(() => {
      if (link === this.#child) link.send({ kind: 'empty' });
    });
  }

  /**
   * Answers a stats request, after a pause as long as the last answer took: a child that requests continually gets at most half
   * of the thread.
   */
  async #answerStats(link: Link<ToChild>): Promise<void> {
    const restMs = this.#restsUntilMs - performance.now();
    if (restMs > 0) await pause(restMs, undefined, { ref: false });
    const begunMs = performance.now();
    if (link === this.#child) await this.#export(link);
    const now = performance.now();
    this.#restsUntilMs = now + Math.min(now - begunMs, MAX_REST_MS);
  }

  /** Exports stats. One export at a time, because each contains the counts since the previous one. */
  #export(link: Link<ToChild>): Promise<void> {
    const before = this.#exporting ?? Promise.resolve();
    const exporting = before.then(async () => {
      try {
        for await (const stats of this.#host.exportStats()) {
          link.send({ kind: 'stats', stats });
          await link.drained();
        }
      } catch (error) {
        // The connections of this process matter more. The last stats will include these.
        logger.error({ err: error }, 'stats do not reach the child process');
      }
    });
    this.#exporting = exporting;
    return exporting;
  }

  /** Replaces the timer. */
  #setTimer(ms: number, callback: () => void): void {
    this.#timer?.clear();
    this.#timer = new PatientTimeout(callback, ms);
  }

  /** Called when the link has ended. `isGone`: by the child's end; otherwise the child may still run, and accept. */
  #childEnded(why: string, isGone: boolean): void {
    this.#detachChild(why, isGone);
    if (!this.#isTakingBack) this.#settleContender();
  }

  #detachChild(why: string, isGone: boolean): void {
    this.#child = undefined;
    this.#timer?.clear();
    this.#silence?.clear();
    if (this.#state === 'ending') return;
    if (this.#state === 'replaced' && isGone) {
      this.#state = 'idle';
      logger.error(`the child process that took over has ended (${why}); this one serves again`);
      return this.#reclaim();
    }
    const wasLive = this.#state === 'replaced';
    if (!wasLive) this.#host.childLost();
    const what = wasLive
      ? 'the link to the child process is unusable'
      : 'the child process was lost before it was live';
    if (!wasLive && !this.#isAlone) {
      this.#state = 'idle';
      logger.warning(`${what} (${why}); this one keeps serving`);
      return;
    }
    this.#state = 'alone';
    this.#isAlone = true;
    const seconds = this.#host.parentShutdownTimeS;
    logger.error(`${what} (${why}); this one ends in ${seconds} s`);
    this.#setTimer(seconds * 1000, () => this.#endAlone('no other process has taken over'));
    // The child with the unusable link has ended while another one was welcomed.
    if (!wasLive && this.#broken === undefined) this.#serveAgain();
  }

  /** Refuses the child, which may still run and must not proceed as if this process had ended. */
  #abandonChild(why: string): void {
    const link = this.#child;
    link?.send({ kind: 'refusal', reason: `its parent has abandoned it: ${why}` });
    link?.close();
    this.#childEnded(why, false);
  }

  #endAlone(why: string): void {
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

/** Divides the offers into messages of limited size; at least one. The sockets of an offer may be spread over several. */
function batchesOf(offers: readonly Offer[]): Batch[] {
  let batch: Batch = { sockets: [], fds: [] };
  const batches = [batch];
  for (const { fds, ...offer } of offers) {
    for (let from = 0; from < fds.length; ) {
      if (batch.fds.length === MAX_FDS || batch.sockets.length === MAX_GROUPS) {
        batch = { sockets: [], fds: [] };
        batches.push(batch);
      }
      const part = fds.slice(from, from + MAX_FDS - batch.fds.length);
      batch.sockets.push({ ...offer, count: part.length });
      batch.fds.push(...part);
      from += part.length;
    }
  }
  return batches;
}
