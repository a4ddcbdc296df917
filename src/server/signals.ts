// Signals from the moment the process starts: what comes before somebody can act on it is kept until then.

export type SignalName = 'SIGTERM' | 'SIGINT' | 'SIGUSR1' | 'SIGHUP';

const NAMES: readonly SignalName[] = ['SIGTERM', 'SIGINT', 'SIGUSR1', 'SIGHUP'];

export class Signals {
  readonly #waiting: SignalName[] = [];
  #handler: ((name: SignalName) => void) | undefined;

  constructor() {
    for (const name of NAMES) process.on(name, () => this.received(name));
    // Writing to a pipe that nobody reads is an error of that write alone.
    process.on('SIGPIPE', () => {});
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
}
