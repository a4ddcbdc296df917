// One child: the process of an epoch, its phase, and the signals to it.

import { type ChildProcess, spawn } from 'node:child_process';

/**
 * starting → live → draining (a newer one is live) → live again (that one is dead); from each of them → leaving, when this
 * wrapper has signalled it to end. A child may exit in any phase.
 */
export type Phase = 'starting' | 'live' | 'draining' | 'leaving';

/** How a child ended. */
export interface EpochExit {
  /** With status 0. */
  readonly isClean: boolean;
  /** For the log: 'status 1', 'signal SIGSEGV', or why it could not be started. */
  readonly how: string;
}

export interface EpochEvents {
  onExit(epoch: Epoch, exit: EpochExit): void;
}

export class Epoch {
  readonly number: number;
  phase: Phase = 'starting';
  /** It has notified that the next one serves. */
  isReplaced = false;
  /** The previous epoch has notified that this one serves. */
  hasServed = false;
  /** It has notified that it accepts, which it does before it is live. */
  accepts = false;
  /** It has notified that it is ending. */
  isStopping = false;
  /** The same, and its socket names are free. */
  hasFreedNames = false;
  /** performance.now(); undefined before it is live. */
  liveSinceMs: number | undefined;
  /** Time of its last WATCHDOG=1; undefined: none. */
  lastWatchdogMs: number | undefined;
  /** Cleared when the phase changes. */
  readonly timers: NodeJS.Timeout[] = [];
  readonly #child: ChildProcess | undefined;
  #hasPendingUsr1 = false;

  /** Starts the program. If that fails, onExit() is called in a later turn of the loop. */
  constructor(number: number, command: readonly string[], env: NodeJS.ProcessEnv, events: EpochEvents) {
    this.number = number;
    try {
      this.#child = start(command, { ...env, RESTART_EPOCH: String(number) });
    } catch (error) {
      setImmediate(() => this.#exited(events, { isClean: false, how: String(error) }));
      return;
    }
    this.#child.on('error', (error) => {
      if (this.pid === undefined) this.#exited(events, { isClean: false, how: error.message });
    });
    this.#child.once('exit', (status, signal) => {
      const how = signal === null ? `status ${status}` : `signal ${signal}`;
      this.#exited(events, { isClean: status === 0, how });
    });
  }

  /** Undefined when it could not be started. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Sends SIGUSR1 now, or as soon as the child is live: before that it may not handle it. */
  reopenLogs(): void {
    if (this.phase === 'starting') this.#hasPendingUsr1 = true;
    else this.#child?.kill('SIGUSR1');
  }

  becomeLive(nowMs: number): void {
    this.#enter('live');
    this.liveSinceMs = nowMs;
    if (this.#hasPendingUsr1) this.#child?.kill('SIGUSR1');
  }

  /** Called when the epoch that had replaced it is dead. */
  serveAgain(): void {
    this.isReplaced = false;
    this.#enter('live');
  }

  drain(): void {
    this.#enter('draining');
  }

  /** Sends SIGTERM. Repeated calls make a child end at once that does so after a second signal. */
  terminate(): void {
    this.#enter('leaving');
    this.#child?.kill('SIGTERM');
  }

  /** Sends SIGKILL to the child's process group. */
  kill(): void {
    this.#enter('leaving');
    if (this.pid === undefined) return;
    try {
      process.kill(-this.pid, 'SIGKILL');
    } catch (error) {
      // It has ended already, and 'exit' follows.
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

  #exited(events: EpochEvents, exit: EpochExit): void {
    for (const timer of this.timers.splice(0)) clearTimeout(timer);
    events.onExit(this, exit);
  }
}

function start([program, ...args]: readonly string[], env: NodeJS.ProcessEnv): ChildProcess {
  return spawn(program!, args, {
    env,
    stdio: 'inherit',
    // A separate session: Ctrl+C in a terminal reaches only this wrapper, which ends all children in order, and the processes
    // that a launch script leaves can be killed with it.
    detached: true,
  });
}
