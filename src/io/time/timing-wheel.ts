// One thread's timers: a hierarchical timing wheel with millisecond resolution, without I/O.
//
// Most timers are timeouts that never fire, so scheduling and cancelling must be cheap: both are a few pointer writes on lists that link
// the Timer objects themselves. The caller provides the time. A timer never fires before its delay has passed on that clock, and fires at
// the first advance() after it.
//
// Four levels of 256 slots would cover 2^32 ms and move each timer at most three times. This wheel has three levels, which reach the next
// multiple of 2^24 ms (4.7 h), and a list for later timers, which is walked at each multiple.

/** A method type, so that a Timer of any owner is assignable to Timer: the wheel only passes a timer its own owner. */
export type OnTimer<T> = { call(owner: T): void }['call'];

/** A reusable timer, kept by its owner. It belongs to at most one wheel at a time. */
export class Timer<T = unknown> {
  /** When it fires, in ticks of its wheel, while it is scheduled. A small integer needs no allocation. */
  deadline = 0;
  prev: Timer | null = null;
  next: Timer | null = null;

  readonly owner: T;
  readonly onTimer: OnTimer<T>;

  /** `onTimer` is called with `owner` each time the timer fires: one function can serve any number of timers. */
  constructor(owner: T, onTimer: OnTimer<T>) {
    this.owner = owner;
    this.onTimer = onTimer;
  }

  get isScheduled(): boolean {
    return this.next !== null;
  }
}

/** Timers for code that may run outside a turn, where the wheel's time is not current. */
export interface Timers {
  /** Schedules `timer` to fire once, `delayMs` or slightly more from now. Replaces an earlier schedule. */
  reschedule(timer: Timer, delayMs: number): void;
  cancel(timer: Timer): void;
}

export interface TimingWheelOptions {
  /** The clock's time at creation, in milliseconds with fraction. */
  nowMs: number;
  /** Called with errors of timer callbacks. The other timers still fire. */
  onError(error: unknown): void;
  /**
   * Called when advance() is needed at `atMs` on the wheel's clock, earlier than last requested. It is not called again until an even
   * earlier timer is scheduled or nextWakeMs() is called.
   */
  onEarlier?(atMs: number): void;
}

export class TimingWheel implements Timers {
  /** The last time set, relative to the wheel's origin. Delays are relative to it. */
  #now = 0;
  /** All timers up to and including this tick have fired. */
  #tick = 0;
  /** The three levels cover ticks [windowStart, windowStart + WINDOW). */
  #windowStart = 0;
  /** The tick for which advance() was last requested. */
  #wakeAt = Number.POSITIVE_INFINITY;
  #isAdvancing = false;
  readonly #origin: number;
  readonly #slots: Timer[] = Array.from({ length: LEVELS * SLOTS }, makeSlot);
  readonly #later: Timer = makeSlot();
  /** A bit for each slot that may hold timers. Cancelling leaves it set; the next search clears it. */
  readonly #occupied = new Int32Array((LEVELS * SLOTS) / 32);
  readonly #onError: (error: unknown) => void;
  readonly #onEarlier: ((atMs: number) => void) | undefined;

  constructor(options: TimingWheelOptions) {
    this.#origin = options.nowMs;
    this.#onError = options.onError;
    this.#onEarlier = options.onEarlier;
  }

  /** The last time that the wheel was given. */
  get nowMs(): number {
    return this.#origin + this.#now;
  }

  /** Sets the time without firing timers. Called when a turn begins, so that delays are relative to it. */
  setTime(nowMs: number): void {
    const now = nowMs - this.#origin;
    if (now > this.#now) this.#now = now;
  }

  /** Schedules `timer` to fire once, `delayMs` to `delayMs` + 1 after the wheel's time. It must not be scheduled already. */
  schedule(timer: Timer, delayMs: number): void {
    const earliest = this.#tick + 1;
    let deadline = Math.ceil(this.#now + delayMs);
    if (!(deadline >= earliest)) deadline = earliest;
    timer.deadline = deadline;
    this.#link(timer);
    if (deadline < this.#wakeAt) this.#requestWake(deadline);
  }

  /** schedule() for a timer that may be scheduled already; replaces its delay. */
  reschedule(timer: Timer, delayMs: number): void {
    if (timer.next !== null) unlink(timer);
    this.schedule(timer, delayMs);
  }

  /** reschedule() unless the timer already fires earlier. */
  hasten(timer: Timer, delayMs: number): void {
    if (timer.next === null || this.#now + delayMs < timer.deadline) this.reschedule(timer, delayMs);
  }

  /** Cancels a timer. A no-op if it is not scheduled. */
  cancel(timer: Timer): void {
    if (timer.next === null) return;
    unlink(timer);
  }

  /**
   * Fires all timers that are due at `nowMs`, the earliest first, and those of one millisecond in the order in which they were scheduled.
   * Timers that callbacks schedule fire in a later millisecond. Time never goes backwards: an earlier `nowMs` counts as the last one.
   */
  advance(nowMs: number): void {
    this.setTime(nowMs);
    const target = Math.floor(this.#now);
    if (target <= this.#tick || this.#isAdvancing) return;
    this.#isAdvancing = true;
    try {
      for (let at = this.#nextOccupiedTick(); at <= target; at = this.#nextOccupiedTick()) {
        this.#tick = at;
        this.#cascade();
        this.#fireSlot((at - this.#windowStart) & SLOT_MASK);
      }
      this.#moveWindow(target);
      this.#tick = target;
    } finally {
      this.#isAdvancing = false;
    }
  }

  /**
   * Returns when advance() must be called next, on the wheel's clock: not later than the first timer, perhaps earlier; Infinity without
   * timers.
   */
  nextWakeMs(): number {
    this.#wakeAt = this.#nextOccupiedTick();
    return this.#origin + this.#wakeAt;
  }

  #requestWake(deadline: number): void {
    this.#wakeAt = deadline;
    this.#onEarlier?.(this.#origin + deadline);
  }

  #link(timer: Timer): void {
    const offset = timer.deadline - this.#windowStart;
    if (offset >= WINDOW) {
      append(this.#later, timer);
      return;
    }
    // The level is that of the highest digit (base 256) in which the deadline differs from the current tick. So all pending slots of a
    // level are above the current digit, and none is used twice.
    const low = offset | 0;
    const difference = low ^ (this.#tick - this.#windowStart);
    let slot: number;
    if (difference < SLOTS) slot = low & SLOT_MASK;
    else if (difference < SLOTS * SLOTS) slot = SLOTS + ((low >>> SLOT_BITS) & SLOT_MASK);
    else slot = 2 * SLOTS + (low >>> (2 * SLOT_BITS));
    this.#occupied[slot >>> 5]! |= 1 << (slot & 31);
    append(this.#slots[slot]!, timer);
  }

  /** Returns the first tick at which a slot fires or must be spread over the level below; Infinity if there is none. */
  #nextOccupiedTick(): number {
    const low = this.#tick - this.#windowStart;
    let slot = this.#firstOccupied(0, low & SLOT_MASK);
    if (slot >= 0) return this.#windowStart + ((low & ~SLOT_MASK) | slot);
    slot = this.#firstOccupied(1, (low >>> SLOT_BITS) & SLOT_MASK);
    if (slot >= 0) return this.#windowStart + ((low & ~(SLOTS * SLOTS - 1)) | (slot << SLOT_BITS));
    slot = this.#firstOccupied(2, low >>> (2 * SLOT_BITS));
    if (slot >= 0) return this.#windowStart + (slot << (2 * SLOT_BITS));
    return this.#later.next === this.#later ? Number.POSITIVE_INFINITY : this.#windowStart + WINDOW;
  }

  /** Returns the first slot of `level` above `digit` that holds timers, or -1. */
  #firstOccupied(level: number, digit: number): number {
    const words = this.#occupied;
    const end = (level + 1) * WORDS_PER_LEVEL;
    const above = level * SLOTS + digit + 1;
    if (digit === SLOT_MASK) return -1;
    let word = above >>> 5;
    let bits = words[word]! & (-1 << (above & 31));
    for (;;) {
      while (bits !== 0) {
        const bit = 31 - Math.clz32(bits & -bits);
        const slot = word * 32 + bit;
        const head = this.#slots[slot]!;
        if (head.next !== head) return slot - level * SLOTS;
        words[word]! &= ~(1 << bit);
        bits &= bits - 1;
      }
      if (++word === end) return -1;
      bits = words[word]!;
    }
  }

  /** Spreads the slots that begin at the current tick over the levels below. */
  #cascade(): void {
    this.#moveWindow(this.#tick);
    const low = this.#tick - this.#windowStart;
    if ((low & (SLOTS * SLOTS - 1)) === 0) this.#spread(this.#slots[2 * SLOTS + (low >>> (2 * SLOT_BITS))]!);
    if ((low & SLOT_MASK) === 0) this.#spread(this.#slots[SLOTS + ((low >>> SLOT_BITS) & SLOT_MASK)]!);
  }

  /** Moves the window to `tick` and links the later timers that are now inside. No timer below `tick` may be left. */
  #moveWindow(tick: number): void {
    if (tick < this.#windowStart + WINDOW) return;
    this.#windowStart = Math.floor(tick / WINDOW) * WINDOW;
    this.#tick = tick;
    this.#spread(this.#later);
  }

  #spread(head: Timer): void {
    let timer = head.next!;
    head.next = head.prev = head;
    while (timer !== head) {
      const next = timer.next!;
      this.#link(timer);
      timer = next;
    }
  }

  #fireSlot(slot: number): void {
    const head = this.#slots[slot]!;
    for (let timer = head.next!; timer !== head; timer = head.next!) {
      unlink(timer);
      try {
        timer.onTimer(timer.owner);
      } catch (error) {
        this.#onError(error);
      }
    }
  }
}

const SLOT_BITS = 8;
const SLOTS = 1 << SLOT_BITS;
const SLOT_MASK = SLOTS - 1;
const LEVELS = 3;
const WINDOW = 2 ** (SLOT_BITS * LEVELS);
const WORDS_PER_LEVEL = SLOTS / 32;

/** Returns the head of an empty circular list. */
function makeSlot(): Timer {
  const head = new Timer<unknown>(undefined, () => {});
  head.next = head.prev = head;
  return head;
}

function append(head: Timer, timer: Timer): void {
  const last = head.prev!;
  timer.prev = last;
  timer.next = head;
  last.next = timer;
  head.prev = timer;
}

function unlink(timer: Timer): void {
  const prev = timer.prev!;
  const next = timer.next!;
  prev.next = next;
  next.prev = prev;
  timer.prev = timer.next = null;
}
