// What connections do in a later turn, behind what has been received by then: in the order in which they have asked for it, and only
// for so long at a time that those that receive something are served between.

/** How long it keeps the thread from the others. */
const MOST_MS = 5;

/** For the connection `id`. */
export interface LaterAct {
  readonly id: number;
  readonly act: () => void;
}

export class LaterTurns {
  readonly #begin: () => void;
  readonly #carryOut: (act: LaterAct) => void;
  #waiting: LaterAct[] = [];

  /** `begin` is called when such a turn begins, and `carryOut` for each act; it must not throw. */
  constructor(begin: () => void, carryOut: (act: LaterAct) => void) {
    this.#begin = begin;
    this.#carryOut = carryOut;
  }

  add(act: LaterAct): void {
    this.#waiting.push(act);
    if (this.#waiting.length === 1) setImmediate(this.#serve);
  }

  /** Nothing that waits is done any more. */
  clear(): void {
    this.#waiting.length = 0;
  }

  readonly #serve = (): void => {
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#begin();
    const endMs = performance.now() + MOST_MS;
    let served = 0;
    while (served < waiting.length && (served === 0 || performance.now() < endMs)) this.#carryOut(waiting[served++]!);
    if (served === waiting.length) return;
    if (this.#waiting.length === 0) setImmediate(this.#serve);
    this.#waiting = [...waiting.slice(served), ...this.#waiting];
  };
}
