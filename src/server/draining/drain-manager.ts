// Drains: for a set time connections are asked to close with their next response; at the end those that cannot be asked are
// closed.

import type { Listener } from '../../config/generated/api.js';
import { Timer, type Timers } from '../../io/time/timing-wheel.js';
import { type DrainStrategy, type DrainWindow, moreUrgent } from '../../listener/drain-window.js';
import { internalError } from '../../log/internal-errors.js';
import { getLogger } from '../../log/logger.js';
import type { ToWorker } from '../../worker/messages/messages.js';
import { type DrainReach, reaches } from './drain-reach.js';

const logger = getLogger('main');

export type DrainReason = 'admin' | 'restart' | 'sigterm';
/** When listeners stop accepting; 'never': not even at the end of the drain time. */
export type StopsAccepting = 'now' | 'at-end' | 'never';

export interface StopOptions {
  /** Accepts the kernel's backlog first. */
  readonly acceptRest: boolean;
  /** The process is about to end and does not wait for a child process that has copies of the sockets. */
  readonly endsSoon?: boolean;
}

export interface DrainOptions {
  readonly reach: DrainReach;
  readonly reason: DrainReason;
  readonly timeMs: number;
  readonly strategy: DrainStrategy;
  readonly stopsAccepting: StopsAccepting;
}

/** The defaults of a drain without its own time or strategy. */
export type DrainDefaults = Pick<DrainOptions, 'timeMs' | 'strategy'>;

/** A drain. It stays in force until the process ends, even after its time is over, unless it is undone. */
export interface Drain {
  readonly options: DrainOptions;
  /** Monotonic. */
  readonly startMs: number;
  /** Resolves when its time is over and the listeners that stop then have stopped, or when the server shuts down. */
  readonly done: Promise<void>;
}

/** The drain of a listener version or filter chain that an update has replaced. */
export interface ReplacementDrain {
  readonly window: DrainWindow;
  /** Cancels the timer of its end. */
  cancel(): void;
}

/** A listener in the view of drains. */
export interface DrainableListener {
  /** Unique in the process. */
  readonly id: number;
  readonly name: string;
  readonly config: Listener;
  readonly isStopped: boolean;
}

export interface DrainContext {
  readonly timers: Timers;
  /** Monotonic. */
  now(): number;
  listeners(): Iterable<DrainableListener>;
  broadcast(message: ToWorker): void;
  /** Resolves when the sockets are closed. */
  stopListeners(reach: DrainReach, options: StopOptions): Promise<void>;
  /** Called when a drain has started or its time is over. */
  changed(): void;
}

export class DrainManager {
  readonly #context: DrainContext;
  readonly #drains: RunningDrain[] = [];

  constructor(context: DrainContext) {
    this.#context = context;
  }

  /** Starts a drain, or returns an earlier one with the same options that covers all of its listeners. */
  start(options: DrainOptions): Drain {
    const joined = this.#drains.find((drain) => covers(drain.options, options));
    if (joined !== undefined) return joined;
    const { reach, reason, stopsAccepting, strategy, timeMs } = options;
    const drain = new RunningDrain(options, this.#context.now(), (ended) => this.#end(ended));
    this.#drains.push(drain);
    const whose = reach === 'inbound' ? 'listeners for inbound traffic' : 'all listeners';
    logger.info(`draining ${whose} for ${timeMs / 1000} s, ${strategy} (${reason})`);
    const windows = new Map<number, DrainWindow>();
    for (const listener of this.#context.listeners()) {
      const window = this.windowOf(listener.config);
      if (window !== undefined) windows.set(listener.id, window);
    }
    this.#context.broadcast({ kind: 'drain', windows });
    if (stopsAccepting === 'now') drain.stopped = this.#context.stopListeners(reach, { acceptRest: false });
    this.#context.timers.reschedule(drain.timer, timeMs);
    this.#context.changed();
    return drain;
  }

  /** Undoes a drain: other drains of these listeners stay in force. Its `done` resolves. */
  undo(drain: Drain, listeners: Iterable<DrainableListener>): void {
    const undone = this.#drains.find((each) => each === drain);
    if (undone === undefined) return;
    this.#drains.splice(this.#drains.indexOf(undone), 1);
    this.#context.timers.cancel(undone.timer);
    const windows = new Map<number, DrainWindow | undefined>();
    for (const { config, id } of listeners) windows.set(id, this.windowOf(config));
    this.#context.broadcast({ kind: 'drain-changed', windows });
    this.#context.changed();
    undone.resolve();
  }

  /** The drain that was started last. */
  get latest(): Drain | undefined {
    return this.#drains.at(-1);
  }

  /** Returns when and how a listener drains; undefined when it does not. */
  windowOf(listener: Listener): DrainWindow | undefined {
    let urgent: DrainWindow | undefined;
    for (const drain of this.#drains) {
      if (reaches(drain.options.reach, listener)) urgent = moreUrgent(urgent, drain.window);
    }
    return urgent;
  }

  /** Returns whether connections of a listener are asked to close: until the time is over, or for good while it accepts. */
  isDraining({ config, isStopped }: DrainableListener): boolean {
    const window = this.windowOf(config);
    return window !== undefined && !(isStopped && this.#context.now() >= window.startMs + window.timeMs);
  }

  /** Drains a listener version or filter chain that an update has replaced. Calls `over` at the end of the time. */
  drainReplaced(id: number, { strategy, timeMs }: DrainDefaults, over: () => void): ReplacementDrain {
    const window: DrainWindow = { startMs: this.#context.now(), timeMs, strategy };
    const timer = new Timer<undefined>(undefined, over);
    this.#context.broadcast({ kind: 'drain', windows: new Map([[id, window]]) });
    this.#context.timers.reschedule(timer, timeMs);
    return { window, cancel: () => this.#context.timers.cancel(timer) };
  }

  /** Cancels the timers of all drains except those of drainReplaced(), and resolves their `done`. */
  close(): void {
    for (const drain of this.#drains) {
      this.#context.timers.cancel(drain.timer);
      drain.resolve();
    }
  }

  #end(drain: RunningDrain): void {
    const { reach, reason, stopsAccepting } = drain.options;
    logger.info(`the time to drain is over (${reason})`);
    if (stopsAccepting === 'at-end') {
      drain.stopped = this.#context.stopListeners(reach, { acceptRest: true, endsSoon: reason === 'sigterm' });
    }
    // After the stop, so that no new connection can arrive in between.
    const failed = (error: unknown) =>
      internalError('internal error: listeners were not stopped at the end of a drain', error);
    void drain.stopped.catch(failed).then(() => {
      if (!this.#drains.includes(drain)) return;
      const ids: number[] = [];
      for (const { config, id } of this.#context.listeners()) if (reaches(reach, config)) ids.push(id);
      this.#context.broadcast({ kind: 'drain-ended', ids });
      this.#context.changed();
      drain.resolve();
    });
  }
}

class RunningDrain implements Drain {
  readonly options: DrainOptions;
  readonly startMs: number;
  readonly window: DrainWindow;
  readonly timer: Timer<RunningDrain>;
  readonly done: Promise<void>;
  /** Resolves when the listeners that this drain stops have stopped. */
  stopped: Promise<void> = Promise.resolve();
  resolve: () => void = () => {};

  constructor(options: DrainOptions, startMs: number, onEnd: (drain: RunningDrain) => void) {
    this.options = options;
    this.startMs = startMs;
    this.window = { startMs, timeMs: options.timeMs, strategy: options.strategy };
    this.timer = new Timer<RunningDrain>(this, onEnd);
    this.done = new Promise((resolve) => {
      this.resolve = resolve;
    });
  }
}

function covers(one: DrainOptions, other: DrainOptions): boolean {
  return (
    one.reason === other.reason &&
    one.stopsAccepting === other.stopsAccepting &&
    one.strategy === other.strategy &&
    one.timeMs === other.timeMs &&
    (one.reach === 'all' || other.reach === 'inbound')
  );
}
