// Runs the network filters of one connection. Each gets received bytes before the next, and may hold them back or end the
// connection. When all filters have passed the connection, the terminal filter accepts it and gets its events.

import type { StreamInfo } from '../../access-log/stream/stream-info.js';
import type { BufferedBytes } from '../../io/buffered-bytes.js';
import { HeldBytes } from '../../io/held-bytes.js';
import type { ConnectStep } from '../../io/shim.js';
import { Timer, type Timers } from '../../io/time/timing-wheel.js';
import type { Stall } from '../../io/transport/connection-handler.js';
import type { DownstreamHandler } from '../downstream-connection.js';
import { FilterClose, FilterStatus, type NetworkFilterFactory, type TerminalNetworkFilter } from '../network-filter.js';
import { FilterStage, type StageOwner } from './filter-stage.js';
import type { ConnectionFilters, FilteredConnection } from './filtered-connection.js';

/** %CONNECTION_TERMINATION_DETAILS% of a connection that is ended because memory is short. */
const NO_MEMORY = 'memory_pressure';

export class FilterRun implements DownstreamHandler, ConnectionFilters, StageOwner {
  readonly connection: FilteredConnection;
  /** Why a filter has ended the connection, or ''. */
  details = '';
  readonly #terminal: TerminalNetworkFilter;
  readonly #maxHeldBytes: number;
  readonly #timers: Timers;
  readonly #stages: FilterStage[] = [];
  /** How many filters have been called with onNewConnection(). */
  #begun = 0;
  /** The terminal filter's handler; undefined until it has accepted the connection. */
  #handler: DownstreamHandler | undefined;
  #heldBytes = 0;
  #receivedBytes = 0;
  #passedBytes = 0;
  /** When the first of the held bytes was received; `#movedMs`: when bytes were last received. */
  #heldSinceMs = 0;
  #movedMs = 0;
  /** A filter has ended the connection, perhaps with a delay. */
  #isRefused = false;
  #delay: Timer<FilterRun> | undefined;
  #isResuming = false;

  /** Returns undefined if the connection is already closed. If it throws, the caller must close the connection. */
  static begin(
    connection: FilteredConnection,
    factories: readonly NetworkFilterFactory[],
    terminal: TerminalNetworkFilter,
    maxHeldBytes: number,
    timers: Timers,
  ): DownstreamHandler | undefined {
    const run = new FilterRun(connection, terminal, maxHeldBytes, timers);
    connection.run = run;
    run.#make(factories);
    if (run.#stages.length > 0) {
      if (!run.#isFinished) run.#beginNext();
      return connection.isClosed ? undefined : run;
    }
    connection.run = undefined;
    return terminal.accept(connection);
  }

  private constructor(
    connection: FilteredConnection,
    terminal: TerminalNetworkFilter,
    maxHeldBytes: number,
    timers: Timers,
  ) {
    this.connection = connection;
    this.#terminal = terminal;
    this.#maxHeldBytes = maxHeldBytes;
    this.#timers = timers;
  }

  #make(factories: readonly NetworkFilterFactory[]): void {
    for (const factory of factories) {
      const stage = new FilterStage(this, this.#stages.length);
      stage.filter = factory.create(stage);
      if (stage.filter !== undefined) this.#stages.push(stage);
    }
  }

  /** Nothing more is passed on. */
  get #isFinished(): boolean {
    return this.#isRefused || this.connection.isClosed;
  }

  get info(): StreamInfo | undefined {
    return this.connection.info ?? this.#handler?.info;
  }

  get withheldBytes(): number {
    return this.#receivedBytes - this.#passedBytes;
  }

  // ── Calls of filters ─────────────────────────────────────────────────────────────────────────────────────────────

  /** Deferred, because the filter may be on the stack. */
  continueLater(stage: FilterStage): void {
    if (this.#isFinished || stage.isContinuing) return;
    stage.isContinuing = true;
    this.connection.transport.defer(this.connection.id, () => {
      stage.isContinuing = false;
      if (this.#isFinished || !stage.isStopped) return;
      stage.isStopped = false;
      this.#release(stage);
    });
  }

  refuse(how: FilterClose, details: string, delayMs: number): void {
    if (this.#isFinished) return;
    this.details = details;
    this.#isRefused = true;
    this.#dropHeld();
    if (delayMs <= 0) return this.#close(how);
    // If a FIN ends the connection, the client is still read until then, so that its FIN is noticed.
    this.connection.setFull(this.#terminal.halfCloses === true);
    this.#delay = new Timer<FilterRun>(this, how === FilterClose.Flush ? closeWithFlush : closeWithoutFlush);
    this.#timers.reschedule(this.#delay, delayMs);
  }

  /** Called when the delay of a close is over. */
  closeNow(how: FilterClose): void {
    try {
      this.#close(how);
    } catch (error) {
      this.onFault(error);
      throw error;
    }
  }

  #close(how: FilterClose): void {
    const handler = this.#handler;
    if (handler?.onFilterClose !== undefined) handler.onFilterClose();
    else handler?.onListenerGone();
    if (how === FilterClose.Flush) this.connection.close(0);
    else this.connection.close(0, 0, 0);
  }

  // ── Passing connections and bytes on ─────────────────────────────────────────────────────────────────────────────

  /**
   * Calls onNewConnection() of the next filters, up to one that stops; after the last one the terminal filter accepts the
   * connection.
   */
  #beginNext(): void {
    while (this.#begun < this.#stages.length) {
      const stage = this.#stages[this.#begun++]!;
      const status = stage.filter!.onNewConnection();
      if (this.#isFinished) return;
      if (status !== FilterStatus.Stop) continue;
      stage.isStopped = true;
      return;
    }
    if (this.#handler !== undefined) return;
    this.#handler = this.#terminal.accept(this.connection);
    if (this.#handler === undefined) this.connection.close(0);
  }

  /** Passes bytes to the filters from `index` on, up to one that stops. */
  #feed(index: number, offset: number, length: number, isEnd: boolean): void {
    for (let at = index; at < this.#stages.length; at++) {
      const stage = this.#stages[at]!;
      const status = stage.filter!.onData(offset, length, isEnd);
      if (this.#isFinished) return;
      const wasHolding = stage.holds;
      stage.isStopped = status === FilterStatus.Stop;
      if (!stage.isStopped && !wasHolding) continue;
      this.#hold(stage, offset, length, isEnd);
      if (!stage.isStopped && !this.#isFinished) this.#release(stage);
      return;
    }
    this.#passedBytes += length;
    if (length > 0) this.#handler!.onData(offset, length);
    if (isEnd && !this.#isFinished) this.#handler!.onEnd();
  }

  #hold(stage: FilterStage, offset: number, length: number, isEnd: boolean): void {
    if (isEnd) stage.holdsEnd = true;
    if (length === 0) return;
    const { clock, memory } = this.connection.transport;
    stage.held ??= new HeldBytes(memory);
    if (!stage.held.append(offset, length)) return this.refuse(FilterClose.NoFlush, NO_MEMORY, 0);
    if (this.#heldBytes === 0) this.#heldSinceMs = clock.monotonicMs;
    this.#heldBytes += length;
    if (this.#heldBytes >= this.#maxHeldBytes) this.connection.setFull(true);
  }

  /** Passes the held bytes of a filter to the next ones, as long as these accept them. */
  #release(stage: FilterStage): void {
    const next = stage.index + 1;
    if (this.#begun === next) this.#beginNext();
    const { held } = stage;
    while (held !== undefined && !held.isEmpty) {
      if (this.#isFinished || this.#waitsForTerminal(next)) return;
      const { start, end } = held.front;
      held.consume(end);
      this.#heldBytes -= end - start;
      const isLast = stage.holdsEnd && held.isEmpty;
      if (isLast) stage.holdsEnd = false;
      this.#feed(next, start, end - start, isLast);
    }
    if (this.#isFinished) return;
    if (this.#heldBytes < this.#maxHeldBytes) this.connection.setFull(false);
    if (!stage.holdsEnd || this.#waitsForTerminal(next)) return;
    stage.holdsEnd = false;
    this.#feed(next, 0, 0, true);
  }

  /** Returns whether the terminal filter is next and has paused reading. */
  #waitsForTerminal(next: number): boolean {
    return next === this.#stages.length && this.connection.isPaused;
  }

  /** Deferred, because the terminal filter may be on the stack. */
  onTerminalResumed(): void {
    const last = this.#stages.at(-1)!;
    if (this.#isResuming || last.isStopped || (!last.holds && !last.holdsEnd)) return;
    this.#isResuming = true;
    this.connection.transport.defer(this.connection.id, () => {
      this.#isResuming = false;
      if (!this.#isFinished && !last.isStopped) this.#release(last);
    });
  }

  #dropHeld(): void {
    for (const stage of this.#stages) {
      stage.held?.clear();
      stage.holdsEnd = false;
    }
    this.#heldBytes = 0;
  }

  // ── DownstreamHandler ────────────────────────────────────────────────────────────────────────────────────────────

  get activeRequests(): number {
    return this.#handler?.activeRequests ?? 0;
  }

  onData(offset: number, length: number): void {
    if (this.#isRefused) return;
    this.#receivedBytes += length;
    this.#movedMs = this.connection.transport.clock.monotonicMs;
    this.#feed(0, offset, length, false);
  }

  onEnd(): void {
    if (this.#terminal.halfCloses) {
      if (!this.#isRefused) this.#feed(0, 0, 0, true);
      return;
    }
    // The client has disconnected: held bytes are useless.
    this.#dropHeld();
    if (this.#handler === undefined) this.connection.close(0);
    else this.#handler.onEnd();
  }

  onReset(errno: number, step: ConnectStep): void {
    if (this.#handler === undefined) this.connection.close(0);
    else this.#handler.onReset(errno, step);
  }

  onConnected(): void {}

  onSecured(): void {
    for (const { filter } of this.#stages) filter?.onSecured?.();
    this.#handler?.onSecured?.();
  }

  onBlocked(): void {
    this.#handler?.onBlocked();
  }

  onDrained(): void {
    this.#handler?.onDrained();
  }

  onDrainEnd(): void {
    if (this.#handler === undefined) this.connection.close(0);
    else this.#handler.onDrainEnd?.();
  }

  onListenerGone(): void {
    if (this.#handler === undefined) this.connection.close(0);
    else this.#handler.onListenerGone();
  }

  onFault(error: unknown): void {
    if (this.#handler === undefined) this.connection.reset();
    else this.#handler.onFault(error);
  }

  addBuffered(sums: BufferedBytes): void {
    this.#handler?.addBuffered?.(sums);
  }

  /** Includes the bytes that filters hold: a waiting client may be one of very many. */
  stalled(): Stall | undefined {
    const own = this.#handler?.stalled?.();
    if (this.#heldBytes === 0) return own;
    return {
      id: this.connection.id,
      sinceMs: Math.min(this.#heldSinceMs, own?.sinceMs ?? this.#heldSinceMs),
      movedMs: Math.max(this.#movedMs, own?.movedMs ?? 0),
      bytes: this.#heldBytes + (own?.bytes ?? 0),
      unsent: own?.unsent ?? 0,
      end: () => (own === undefined ? this.refuse(FilterClose.NoFlush, NO_MEMORY, 0) : own.end()),
    };
  }

  // ── End ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Called by the connection when it has ended. */
  destroy(): void {
    if (this.#delay !== undefined) this.#timers.cancel(this.#delay);
    this.#dropHeld();
    for (const { filter } of this.#stages) {
      try {
        filter?.onDestroy?.();
      } catch (error) {
        this.connection.transport.report(error, 'onDestroy() of a network filter failed');
      }
    }
  }
}

function closeWithFlush(run: FilterRun): void {
  run.closeNow(FilterClose.Flush);
}

function closeWithoutFlush(run: FilterRun): void {
  run.closeNow(FilterClose.NoFlush);
}
