// What this process gives to a child process that replaces it, and what it takes over from its own parent: sockets, counts
// and established connections.

import { setTimeout as setTimeoutPromise } from 'node:timers/promises';
import type { NativeShim } from '../../io/shim.js';
import { getLogger } from '../../log/logger.js';
import type { StatsPiece } from '../../restart/messages.js';
import type { Offer } from '../../restart/parent-end.js';
import type { Section } from '../../stats/read/section.js';
import type { StatsStore } from '../../stats/store.js';
import type { ToWorker } from '../../worker/messages.js';
import type { DrainOptions } from '../draining/drain-manager.js';
import type { ListenerSet } from '../listeners/listener-set.js';
import type { PrimaryListener } from '../listeners/primary-listener.js';
import { isQuiet, type OpenConnections } from '../workers/open-connections.js';
import { StatsExport } from './stats-export.js';
import type { StatsImport } from './stats-import.js';
import type { TakeOver } from './take-over.js';
import { dealOut, openTravelChannels } from './travel-channels.js';

export interface SuccessionHost {
  readonly shim: NativeShim;
  readonly store: StatsStore;
  readonly concurrency: number;
  readonly listeners: ListenerSet;
  /** By a child process. */
  readonly takeOver: TakeOver;
  /** What the parent process has counted. */
  readonly import: StatsImport;
  readonly isEnding: boolean;
  /** Of this process alone. */
  readonly connectionCount: number;
  /** Of this process alone, in bytes. */
  readonly memoryAllocated: number;
  send(worker: number, message: ToWorker): void;
  flushStats(): Promise<void>;
  /** How much of a counter the stats sinks have been given; undefined when there are none. */
  given(section: Section, index: number): number | undefined;
  /** Closes their sockets, everywhere; with `acceptRest` what waits at them is accepted first. */
  stop(listeners: readonly PrimaryListener[], acceptRest: boolean): Promise<void>;
  startDrain(options: Omit<DrainOptions, 'timeMs' | 'strategy'>): void;
  openConnections(): Promise<OpenConnections>;
}

/** How often a process that is replaced looks whether its last connection has gone. */
const EMPTY_POLL_MS = 50;

const logger = getLogger('main');

export class Succession {
  readonly #host: SuccessionHost;
  #export: StatsExport | undefined;

  constructor(host: SuccessionHost) {
    this.#host = host;
  }

  get concurrency(): number {
    return this.#host.concurrency;
  }

  /** The sockets of all listeners, for a child process; the descriptors stay this one's. */
  offerSockets(): Offer[] {
    this.#host.takeOver.begin();
    return this.#host.listeners.offers.make();
  }

  /** Those that listeners have got since. */
  offerMoreSockets(): Offer[] {
    return this.#host.listeners.offers.more();
  }

  /** Calls back when a listener has got sockets while a child process begins. */
  onSockets(listener: () => void): void {
    this.#host.listeners.onAccept = () => {
      if (this.#host.takeOver.isBeginning) listener();
    };
  }

  /** The child process is gone before it took over. */
  childLost(): void {
    this.#host.takeOver.lost();
    this.#host.listeners.childHasSettled();
  }

  /**
   * A child process has taken these sockets over, and accepts: nothing is accepted here any more, but what the kernel has
   * queued at the others is. Stats are given to sinks no longer: the child's are given them.
   */
  handOver(taken: ReadonlySet<number>): void {
    const { listeners: set, takeOver } = this.#host;
    takeOver.done();
    set.childHasSettled();
    this.#export = this.#exportFrom(this.#export);
    const kept = set.offers.withNumbers(taken);
    const listeners = set.stop(false);
    const dropped = listeners.filter((each) => !kept.has(each));
    const stopped = [this.#host.stop([...kept], false)];
    if (dropped.length > 0) stopped.push(this.#host.stop(dropped, true));
    // A client that is asked to leave must not come back to a worker here that is about to stop.
    void Promise.all(stopped).then(() => {
      if (!this.#host.isEnding) this.#host.startDrain({ reach: 'all', reason: 'restart', stopsAccepting: 'now' });
    });
  }

  /** What was counted since the last call, for the child process; see StatsExport. */
  async *exportStats(): AsyncGenerator<StatsPiece> {
    // A flush that runs is given to sinks: what it has is not new. Afterwards nothing changes any more.
    if (!this.#host.isEnding) await this.#host.flushStats();
    this.#export ??= this.#exportFrom(undefined);
    const { memoryAllocated, connectionCount: connections } = this.#host;
    yield* this.#export.pieces({ memoryAllocated, connections });
  }

  /** What the parent process has counted. */
  importStats(piece: StatsPiece): void {
    this.#host.import.add(piece);
  }

  /** The parent process is gone. */
  parentEnded(): void {
    this.#host.import.end();
  }

  /** Established connections leave for the child process, which has so many workers. Gives its ends of the channels. */
  handOverConnections(childWorkers: number): number[] {
    const plan = openTravelChannels(this.#host.shim, this.concurrency, childWorkers);
    plan.byWorker.forEach((channels, index) => {
      this.#host.send(index, { kind: 'hand-over', channels, descriptors: plan.descriptors });
    });
    logger.info('handing established connections over to the child process');
    return plan.childEnds;
  }

  /** They come from the parent process on these channels. */
  takeConnections(channels: readonly number[]): void {
    dealOut(channels, this.concurrency).forEach((own, index) => {
      this.#host.send(index, { kind: 'take-over', channels: own });
    });
  }

  /** Resolves when there are no connections any more, and admin has answered; never if the process ends before. */
  async empty(isAnswering: () => boolean): Promise<void> {
    while (!this.#host.isEnding) {
      const open = await this.#host.openConnections();
      if (isQuiet(open) && open.accepting === 0 && !isAnswering()) return;
      await setTimeoutPromise(EMPTY_POLL_MS);
    }
    return new Promise(() => {});
  }

  /** `before`: told a child that is gone, whose sinks were given what it knew. */
  #exportFrom(before: StatsExport | undefined): StatsExport {
    return new StatsExport(this.#host.store, (section, index) => {
      const given = this.#host.given(section, index);
      return given === undefined ? undefined : Math.max(given, before?.told(section, index) ?? 0);
    });
  }
}
