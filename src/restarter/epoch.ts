// One child: the process of an epoch, how far it is, and what it is told.

import { type ChildProcess, spawn } from 'node:child_process';

/**
 * starting → live → draining (a newer one is live) → live again (that one is dead); from each of them → leaving, when this wrapper has
 * told it to go. A child may leave in any of them.
 */
export type Phase = 'starting' | 'live' | 'draining' | 'leaving';

/** How a child left. */
export interface Departure {
  /** With status 0. */
  readonly isClean: boolean;
  /** For the log: 'status 1', 'signal SIGSEGV', or why it could not be started. */
  readonly how: string;
}

export interface EpochEvents {
  onLeft(epoch: Epoch, departure: Departure): void;
}

export class Epoch {
  readonly number: number;
  phase: Phase = 'starting';
  /** It has said that the next one serves. */
  isReplaced = false;
  /** The one before has said that this one serves. */
  hasServed = false;
  /** It has said that it accepts, which it does before it is live. */
  accepts = false;
  /** It has said that it ends. */
  isStopping = false;
  /** The same, and another process may have its socket names. */
  hasFreedNames = false;
  /** performance.now(); undefined before it is live. */
  liveSinceMs: number | undefined;
  /** When it said WATCHDOG=1 last; undefined when it never did. */
  lastSignOfLifeMs: number | undefined;
  /** Ends with the phase in which it was made. */
  readonly timers: NodeJS.Timeout[] = [];
  readonly #child: ChildProcess | undefined;
  #owesUsr1 = false;

  /** Starts the program. What cannot be started leaves as well, in a later turn of the loop. */
  constructor(number: number, command: readonly string[], env: NodeJS.ProcessEnv, events: EpochEvents) {
    this.number = number;
    try {
      this.#child = start(command, { ...env, RESTART_EPOCH: String(number) });
    } catch (error) {
      setImmediate(() => this.#left(events, { isClean: false, how: String(error) }));
      return;
    }
    this.#child.on('error', (error) => {
      if (this.pid === undefined) this.#left(events, { isClean: false, how: error.message });
    });
    this.#child.once('exit', (status, signal) => {
      const how = signal === null ? `status ${status}` : `signal ${signal}`;
      this.#left(events, { isClean: status === 0, how });
    });
  }

  /** Undefined when it could not be started. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Does what SIGUSR1 asks for now, or as soon as the child is live: before that it may not listen for it. */
  reopenLogs(): void {
    if (this.phase === 'starting') this.#owesUsr1 = true;
    else this.#child?.kill('SIGUSR1');
  }

  becomeLive(nowMs: number): void {
    this.#enter('live');
    this.liveSinceMs = nowMs;
    if (this.#owesUsr1) this.#child?.kill('SIGUSR1');
  }

  /** The one that has replaced it is dead. */
  serveAgain(): void {
    this.isReplaced = false;
    this.#enter('live');
  }

  drain(): void {
    this.#enter('draining');
  }

  /** SIGTERM; more than once is good for a child that ends at once when it gets a second one. */
  terminate(): void {
    this.#enter('leaving');
    this.#child?.kill('SIGTERM');
  }

  /** SIGKILL for the child and what it has started, if that has not made a session of its own. */
  kill(): void {
    this.#enter('leaving');
    if (this.pid === undefined) return;
    try {
      process.kill(-this.pid, 'SIGKILL');
    } catch (error) {
      // It has left already, which will be heard of.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }

  /** 'epoch 3 live' */
  describe(): string {
    return `epoch ${this.number} ${this.isStopping ? 'leaving' : this.phase}`;
  }

  #enter(phase: Phase): void {
    this.phase = phase;
    for (const timer of this.timers.splice(0)) clearTimeout(timer);
  }

  #left(events: EpochEvents, departure: Departure): void {
    for (const timer of this.timers.splice(0)) clearTimeout(timer);
    events.onLeft(this, departure);
  }
}

function start([program, ...args]: readonly string[], env: NodeJS.ProcessEnv): ChildProcess {
  return spawn(program!, args, {
    env,
    stdio: 'inherit',
    // A session of its own: Ctrl+C in a terminal reaches this wrapper alone, which ends all in order; and what a launch
    // script leaves behind can be killed with it.
    detached: true,
  });
}
