// Signals from the moment the process starts: what comes before somebody can act on it is kept until then.

import inspector from 'node:inspector';

export type SignalName = 'SIGTERM' | 'SIGINT' | 'SIGUSR1' | 'SIGHUP';

const NAMES: readonly SignalName[] = ['SIGTERM', 'SIGINT', 'SIGUSR1', 'SIGHUP'];

/** The threads of a process that is killed do not end in the same moment, and this one may hear late of it. */
const SAME_END_MS = 200;

/** The thread of Node that opens the debugger's port may be slow to do it. */
const DEBUGGER_IS_OPEN_BY_MS = 1000;

/**
 * Made by an entry file before it loads anything else: until somebody listens for SIGUSR1, Node answers it by opening its
 * debugger port, and a SIGTERM during start-up must end the process in order.
 */
export class Signals {
  readonly #waiting: SignalName[] = [];
  readonly #startedBy = process.ppid;
  readonly #ending = new AbortController();
  #handler: ((name: SignalName) => void) | undefined;
  #terminatedAt = Number.NEGATIVE_INFINITY;

  constructor() {
    for (const name of NAMES) process.on(name, () => (name === 'SIGTERM' ? this.#terminated() : this.received(name)));
    // Writing to a pipe that nobody reads is an error of that write alone.
    process.on('SIGPIPE', () => {});
    // Left to itself Node takes its signal handlers away before the process has gone, and the next signal would be its end.
    process.once('beforeExit', () => process.exit());
    this.closeDebugger();
    // Behind the poll of that turn: from Node 22 on, the first poll opens again what was closed before it.
    setTimeout(() => setImmediate(() => this.closeDebugger()), DEBUGGER_IS_OPEN_BY_MS).unref();
  }

  /** Aborted by a SIGTERM or SIGINT, which is its reason, while nobody handles signals: what takes long need not be finished. */
  get ending(): AbortSignal {
    return this.#ending.signal;
  }

  received(name: SignalName): void {
    if (this.#handler !== undefined) return this.#handler(name);
    this.#waiting.push(name);
    if (name === 'SIGTERM' || name === 'SIGINT') this.#ending.abort(name);
  }

  /** From now on `handler` gets every signal, first those that have come already. */
  handle(handler: (name: SignalName) => void): void {
    this.#handler = handler;
    for (const name of this.#waiting.splice(0)) handler(name);
  }

  /**
   * Who is to end with the process that started it gets SIGTERM for each thread of that process, whose end is one reason and
   * not several.
   */
  #terminated(): void {
    const now = performance.now();
    const mayBeSame = now - this.#terminatedAt < SAME_END_MS;
    this.#terminatedAt = now;
    if (!mayBeSame) return this.received('SIGTERM');
    setTimeout(() => {
      if (process.ppid === this.#startedBy) this.received('SIGTERM');
    }, SAME_END_MS).unref();
  }

  /** A SIGUSR1 that came before somebody listened for it opens the port: it counts as received. */
  closeDebugger(): void {
    if (inspector.url() === undefined || process.execArgv.some((argument) => argument.startsWith('--inspect'))) return;
    inspector.close();
    this.received('SIGUSR1');
  }
}
