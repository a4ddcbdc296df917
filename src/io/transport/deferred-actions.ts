// Runs deferred actions of connections in later turns, after input that has arrived by then. They run in order, in time slices that let
// other connections be served in between.

/** Length of a time slice. */
const MAX_SLICE_MS = 5;

/** An action of the connection `id`. */
export interface DeferredAction {
  readonly id: number;
  readonly action: () => void;
}

export class DeferredActions {
  readonly #begin: () => void;
  readonly #run: (act: DeferredAction) => void;
  #waiting: DeferredAction[] = [];

  /** `begin` is called when a turn of deferred actions begins, and `carryOut` for each action. `carryOut` must not throw. */
  constructor(begin: () => void, carryOut: (act: DeferredAction) => void) {
    this.#begin = begin;
    this.#run = carryOut;
  }

  add(act: DeferredAction): void {
    this.#waiting.push(act);
    if (this.#waiting.length === 1) setImmediate(this.#serve);
  }

  /** Drops all pending actions. */
  clear(): void {
    this.#waiting.length = 0;
  }

  readonly #serve = (): void => {
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#begin();
    const endMs = performance.now() + MAX_SLICE_MS;
    let served = 0;
    while (served < waiting.length && (served === 0 || performance.now() < endMs)) this.#run(waiting[served++]!);
    if (served === waiting.length) return;
    if (this.#waiting.length === 0) setImmediate(this.#serve);
    this.#waiting = [...waiting.slice(served), ...this.#waiting];
  };
}
