// Signals from the start of the process: those received before a handler is set are kept for it.

import inspector from 'node:inspector';

export type SignalName = 'SIGTERM' | 'SIGINT' | 'SIGUSR1' | 'SIGHUP';

const NAMES: readonly SignalName[] = ['SIGTERM', 'SIGINT', 'SIGUSR1', 'SIGHUP'];

/** The threads of a killed process do not end at the same moment, and this process may be notified late. */
const PARENT_END_MS = 200;

/** Node's own thread may open the debugger's port this late. */
const DEBUGGER_OPEN_DELAY_MS = 1000;

/**
 * Created by an entry file before it loads anything else. Until SIGUSR1 has a listener, Node opens its debugger port on that
 * signal, and a SIGTERM during start-up must end the process in order.
 */
export class Signals {
  readonly #waiting: SignalName[] = [];
  readonly #startedBy = process.ppid;
  readonly #ending = new AbortController();
  #handler: ((name: SignalName) => void) | undefined;
  #terminatedAt = Number.NEGATIVE_INFINITY;

  constructor() {
    for (const name of NAMES) process.on(name, () => (name === 'SIGTERM' ? this.#onSigterm() : this.received(name)));
    // Writing to a closed pipe is an error of that write only.
    process.on('SIGPIPE', () => {});
    // By default, Node removes its signal handlers before the process has exited, and the next signal would kill it.
    process.once('beforeExit', () => process.exit());
    this.closeDebugger();
    // After the poll of that turn: since Node 22, the first poll opens again what was closed before it.
    setTimeout(() => setImmediate(() => this.closeDebugger()), DEBUGGER_OPEN_DELAY_MS).unref();
  }

  /** Aborted by a SIGTERM or SIGINT (its reason) while no handler is set, so that long start-up work can stop. */
  get ending(): AbortSignal {
    return this.#ending.signal;
  }

  received(name: SignalName): void {
    if (this.#handler !== undefined) return this.#handler(name);
    this.#waiting.push(name);
    if (name === 'SIGTERM' || name === 'SIGINT') this.#ending.abort(name);
  }

  /** Passes every signal to `handler`, beginning with those already received. */
  handle(handler: (name: SignalName) => void): void {
    this.#handler = handler;
    for (const name of this.#waiting.splice(0)) handler(name);
  }

  /**
   * A child with a parent death signal receives SIGTERM for each thread of its parent. These signals have one cause, so they
   * count once.
   */
  #onSigterm(): void {
    const now = performance.now();
    const mayBeParentEnd = now - this.#terminatedAt < PARENT_END_MS;
    this.#terminatedAt = now;
    if (!mayBeParentEnd) return this.received('SIGTERM');
    setTimeout(() => {
      if (process.ppid === this.#startedBy) this.received('SIGTERM');
    }, PARENT_END_MS).unref();
  }

  /** Closes the debugger port. If SIGUSR1 opened it before the listener was set, the signal counts as received. */
  closeDebugger(): void {
    if (inspector.url() === undefined || process.execArgv.some((argument) => argument.startsWith('--inspect'))) return;
    inspector.close();
    this.received('SIGUSR1');
  }
}
