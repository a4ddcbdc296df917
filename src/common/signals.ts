// Signals from the moment the process starts: what comes before somebody can act on it is kept until then.

import inspector from 'node:inspector';

export type SignalName = 'SIGTERM' | 'SIGINT' | 'SIGUSR1' | 'SIGHUP';

const NAMES: readonly SignalName[] = ['SIGTERM', 'SIGINT', 'SIGUSR1', 'SIGHUP'];

/** The thread of Node that opens the debugger's port may be slow to do it. */
const DEBUGGER_IS_OPEN_BY_MS = 1000;

/**
 * Made by an entry file before it loads anything else: until somebody listens for SIGUSR1, Node answers it by opening its
 * debugger port, and a SIGTERM during start-up must end the process in order.
 */
export class Signals {
  readonly #waiting: SignalName[] = [];
  #handler: ((name: SignalName) => void) | undefined;

  constructor() {
    for (const name of NAMES) process.on(name, () => this.received(name));
    // Writing to a pipe that nobody reads is an error of that write alone.
    process.on('SIGPIPE', () => {});
    this.closeDebugger();
    setTimeout(() => this.closeDebugger(), DEBUGGER_IS_OPEN_BY_MS).unref();
  }

  received(name: SignalName): void {
    if (this.#handler === undefined) this.#waiting.push(name);
    else this.#handler(name);
  }

  /** From now on `handler` gets every signal, first those that have come already. */
  handle(handler: (name: SignalName) => void): void {
    this.#handler = handler;
    for (const name of this.#waiting.splice(0)) handler(name);
  }

  /** A SIGUSR1 that came before somebody listened for it opens the port: it counts as received. */
  closeDebugger(): void {
    if (inspector.url() === undefined || process.execArgv.some((argument) => argument.startsWith('--inspect'))) return;
    inspector.close();
    this.received('SIGUSR1');
  }
}
