// Connects the server with its hot-restart parent and child: sockets, stats and established connections pass from process to
// process.

import { setTimeout as setTimeoutPromise } from 'node:timers/promises';
import { getLogger } from '../../log/logger.js';
import type { StatsPiece } from '../../restart/messages.js';
import type { Offer } from '../../restart/parent-end.js';
import type { TicketKeys } from '../../tls/shared-ticket-keys.js';
import type { AdminInterface } from '../admin/admin-interface.js';
import type { Drain } from '../draining/drain-manager.js';
import type { Server } from '../server.js';
import { isQuiet } from '../workers/open-connections.js';
import { distribute, openHandOverChannels } from './hand-over-channels.js';
import type { RestartedServer } from './hot-restart.js';
import { StatsExport } from './stats-export.js';

export interface SuccessionEvents {
  /** Called when this process accepts connections, beside its parent. */
  servingStarted(): void;
  /** Called when a child process has taken over: this process only ends its connections. */
  handedOver(): void;
  /** Called when that child is dead: this process serves again. */
  reclaimed(): void;
  /** The process is draining before its end. */
  readonly isDraining: boolean;
  /** Ends the process with this exit status. */
  end(status: number): void;
}

/** Number of the admin interface among the offered sockets; listeners have small numbers. */
const ADMIN_ID = 2 ** 32 - 1;

/** Interval at which a replaced process checks for remaining connections. */
const EMPTY_POLL_MS = 50;

const logger = getLogger('main');

export class Succession implements RestartedServer {
  readonly concurrency: number;
  readonly #server: Server;
  readonly #admin: AdminInterface | undefined;
  readonly #events: SuccessionEvents;
  #export: StatsExport | undefined;
  /** Undefined unless a child process serves. */
  #drain: Drain | undefined;

  constructor(server: Server, admin: AdminInterface | undefined, events: SuccessionEvents) {
    this.concurrency = server.primary.concurrency;
    this.#server = server;
    this.#admin = admin;
    this.#events = events;
  }

  ticketKeys(): TicketKeys | undefined {
    return this.#server.primary.tls.ticketKeys;
  }

  offer(): readonly Offer[] {
    const { configuration, primary } = this.#server;
    primary.takeOver.begin();
    const ofListeners = configuration.listeners.offers.offerAll();
    const ofAdmin = this.#admin?.offer(ADMIN_ID);
    return ofAdmin === undefined ? ofListeners : [...ofListeners, ofAdmin];
  }

  offerNewSockets(): readonly Offer[] {
    return this.#server.configuration.listeners.offers.offerNew();
  }

  onSockets(listener: () => void): void {
    const { configuration, primary } = this.#server;
    configuration.listeners.onAccept = () => {
      if (primary.takeOver.isBeginning) listener();
    };
  }

  socketsReceived(): void {
    this.#server.configuration.listenerDiscovery?.retryUnbound();
  }

  childLost(): void {
    const { configuration, primary } = this.#server;
    primary.takeOver.lost();
    configuration.listeners.childHasSettled();
    configuration.listeners.acceptOnAll();
  }

  addSockets(id: number, fds: readonly number[]): void {
    const { configuration, primary } = this.#server;
    if (!this.#server.isEnding) return configuration.listeners.addSockets(id, fds);
    for (const fd of fds) primary.shim.closeDescriptor(fd);
  }

  servingStarted(): void {
    this.#events.servingStarted();
  }

  /**
   * Stops accepting here, except for the backlogs of sockets that are not `taken`. Stops flushing to sinks: the child's take
   * over. Resolves when the admin interface no longer answers.
   */
  handOver(taken: ReadonlySet<number>): Promise<void> {
    this.#events.handedOver();
    const admin = this.#admin?.handOver(taken.has(ADMIN_ID));
    const { configuration, primary } = this.#server;
    const { listeners } = configuration;
    primary.takeOver.done();
    this.#export = this.#exportFrom(this.#export);
    const stopped = listeners.replaced(taken);
    listeners.childHasSettled();
    // A client that is asked to reconnect must not reach a worker here that is about to stop.
    void stopped.then(() => {
      if (this.#server.isEnding || !primary.takeOver.isDone) return;
      this.#drain = listeners.drains.start({ reach: 'all', reason: 'restart', stopsAccepting: 'never' });
    });
    return admin ?? Promise.resolve();
  }

  furtherSockets(): Iterable<{ readonly id: number; readonly fds: readonly number[] }> {
    return this.#server.configuration.listeners.furtherSockets();
  }

  release(ids: ReadonlySet<number>): Promise<void> {
    return this.#server.configuration.listeners.release(ids);
  }

  reclaim(): Promise<void> {
    const { configuration, isEnding, primary } = this.#server;
    if (isEnding || this.#events.isDraining) return Promise.resolve();
    const { listeners } = configuration;
    primary.takeOver.undone();
    const reopened = listeners.reclaim();
    if (this.#drain !== undefined) listeners.drains.undo(this.#drain);
    this.#drain = undefined;
    void this.#admin?.reclaim();
    this.#events.reclaimed();
    // The dead child's sinks have received what was exported to it.
    const { sinks } = this.#server.flushes;
    if (!sinks.isEmpty) this.#export?.forEachExported((name, total) => sinks.creditUpTo(name, total));
    return reopened;
  }

  async *exportStats(): AsyncGenerator<StatsPiece> {
    const server = this.#server;
    // What a running flush sends to the sinks counts as flushed, so it is completed first. Later flushes send nothing.
    if (!server.isEnding) await server.flushes.run();
    this.#export ??= this.#exportFrom(undefined);
    yield* this.#export.pieces(server.holdings);
  }

  importStats(piece: StatsPiece): void {
    this.#server.parentStats.add(piece);
  }

  parentEnded(): void {
    this.#server.parentStats.end();
  }

  handOverConnections(childWorkers: number): number[] {
    const { shim, workers } = this.#server.primary;
    const plan = openHandOverChannels(shim, this.concurrency, childWorkers);
    plan.byWorker.forEach((channels, index) => {
      workers.send(index, { kind: 'hand-over', channels, descriptors: plan.descriptors });
    });
    logger.info('handing established connections over to the child process');
    return plan.childEnds;
  }

  takeConnections(channels: readonly number[]): void {
    distribute(channels, this.concurrency).forEach((own, index) => {
      this.#server.primary.workers.send(index, { kind: 'take-over', channels: own });
    });
  }

  async empty(): Promise<void> {
    const { drains } = this.#server.configuration.listeners;
    while (!this.#server.isEnding && this.#server.primary.takeOver.isDone) {
      const open = await drains.openConnections();
      if (isQuiet(open) && open.accepting === 0 && this.#admin?.isAnswering !== true) return;
      await setTimeoutPromise(EMPTY_POLL_MS);
    }
    return new Promise(() => {});
  }

  end(status: number): void {
    this.#events.end(status);
  }

  /** `before`: the export to an earlier child, now dead, whose sinks have received what was exported. */
  #exportFrom(before: StatsExport | undefined): StatsExport {
    const { flushes, primary } = this.#server;
    return new StatsExport(primary.store, (section, index) => {
      const flushed = flushes.sinks.flushedAmount(section, index);
      return flushed === undefined ? undefined : Math.max(flushed, before?.exported(section, index) ?? 0);
    });
  }
}
