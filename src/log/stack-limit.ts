// Limits how often the stack of one fault is logged: a fault that repeats without end must not fill the disk.

/** Stacks of one fault that are logged in a row. */
const BURST = 30;
/** Afterwards one of them is logged in this time. */
const EVERY_MS = 60_000;
/** Faults that are told apart; the others together count as one. */
const MAX_FAULTS = 64;
/** Frames that tell one fault from another: the place that threw, and its caller. */
const FRAMES = 2;

export class StackLimit {
  readonly #faults = new Map<string, Fault>();

  /**
   * Decides whether something that was thrown is logged at `nowMs`. Returns how many like it have been left out since the last
   * one that was logged, or undefined when this one is to be left out too.
   */
  admit(thrown: unknown, nowMs: number): number | undefined {
    const fault = this.#faultOf(placeOf(thrown), nowMs);
    fault.credit = Math.min(BURST, fault.credit + (nowMs - fault.atMs) / EVERY_MS);
    fault.atMs = nowMs;
    if (fault.credit < 1) {
      fault.leftOut++;
      return undefined;
    }
    fault.credit--;
    const { leftOut } = fault;
    fault.leftOut = 0;
    return leftOut;
  }

  #faultOf(place: string, nowMs: number): Fault {
    const key = this.#faults.size < MAX_FAULTS || this.#faults.has(place) ? place : OTHERS;
    let fault = this.#faults.get(key);
    if (fault === undefined) {
      fault = { credit: BURST, atMs: nowMs, leftOut: 0 };
      this.#faults.set(key, fault);
    }
    return fault;
  }
}

interface Fault {
  /** Stacks that may be logged. */
  credit: number;
  atMs: number;
  leftOut: number;
}

const OTHERS = '';

/** Where it was thrown. Messages do not count: they may hold what a client has sent. */
function placeOf(thrown: unknown): string {
  try {
    if (!(thrown instanceof Error) || typeof thrown.stack !== 'string') return typeof thrown;
    const frames = thrown.stack.split('\n').filter((line) => /^\s+at /.test(line));
    return frames.slice(0, FRAMES).join('\n');
  } catch {
    return OTHERS;
  }
}
