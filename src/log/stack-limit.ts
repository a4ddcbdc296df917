// Limits how often the stack of one fault is logged, so that a repeating fault cannot fill the disk.

/** Stacks of one fault that are logged in a row. */
const BURST = 30;
/** After that, one stack is logged per this time. */
const EVERY_MS = 60_000;
/** Number of faults that are tracked separately; all others share one entry. */
const MAX_FAULTS = 64;
/** Frames that identify a fault: the place that threw, and its caller. */
const FRAMES = 2;

export class StackLimit {
  readonly #faults = new Map<string, Fault>();

  /**
   * Decides whether an exception is logged at `nowMs`. Returns the number of similar ones that were suppressed since the last
   * logged one, or undefined if this one is suppressed too.
   */
  admit(thrown: unknown, nowMs: number): number | undefined {
    const fault = this.#faultOf(placeOf(thrown), nowMs);
    fault.credit = Math.min(BURST, fault.credit + (nowMs - fault.atMs) / EVERY_MS);
    fault.atMs = nowMs;
    if (fault.credit < 1) {
      fault.suppressed++;
      return undefined;
    }
    fault.credit--;
    const { suppressed } = fault;
    fault.suppressed = 0;
    return suppressed;
  }

  #faultOf(place: string, nowMs: number): Fault {
    const key = this.#faults.size < MAX_FAULTS || this.#faults.has(place) ? place : OTHERS;
    let fault = this.#faults.get(key);
    if (fault === undefined) {
      fault = { credit: BURST, atMs: nowMs, suppressed: 0 };
      this.#faults.set(key, fault);
    }
    return fault;
  }
}

interface Fault {
  /** Stacks that may be logged. */
  credit: number;
  atMs: number;
  suppressed: number;
}

const OTHERS = '';

/** Returns the place that threw. Messages are ignored, because they may contain client data. */
function placeOf(thrown: unknown): string {
  try {
    if (!(thrown instanceof Error) || typeof thrown.stack !== 'string') return typeof thrown;
    const frames = thrown.stack.split('\n').filter((line) => /^\s+at /.test(line));
    return frames.slice(0, FRAMES).join('\n');
  } catch {
    return OTHERS;
  }
}
