// One thread's timers: a hierarchical timing wheel with a resolution of a millisecond, without I/O.
//
// Most timers are timeouts that never fire, so scheduling and cancelling must cost next to nothing: both are a few
// pointer writes on lists that run through the Timer objects themselves. Time comes in from outside; a timer never fires
// before its delay has passed on that clock, and fires at the first advance() after it.
//
// Four levels of 256 slots reach 2^32 ms with each entry moved at most three times. Here there are three of them, which
// reach to the next multiple of 2^24 ms (4.7 h), and one list for what lies beyond, which is walked at each multiple.

/** Written as a method so that a Timer of any owner is a Timer for the wheel, which only ever passes its own owner. */
export type OnTimer<T> = { call(owner: T): void }['call'];

/** A timer that its owner keeps and schedules again and again; it belongs to at most one wheel at a time. */
export class Timer<T = unknown> {
  /** When it fires, in ticks of its wheel, as long as it is scheduled. A small integer needs no object of its own. */
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

/** Where timers are kept by whoever need not know whether this is a turn, in which the wheel's own time is right. */
export interface Timers {
  /** Fires `timer` once, `delayMs` or a little more from now, whether it was scheduled or not. */
  reschedule(timer: Timer, delayMs: number): void;
  cancel(timer: Timer): void;
}

export interface TimingWheelOptions {
  /** The clock's reading, in milliseconds with fraction, when the wheel is made. */
  nowMs: number;
  /** Called with what a timer's callback throws; the other timers fire all the same. */
  onError(error: unknown): void;
  /**
   * Called when advance() is needed earlier than it was asked for: at `atMs` on the wheel's clock. After that call
   * nothing is asked for until an earlier timer is scheduled or nextWakeMs() is read.
   */
  onEarlier?(atMs: number): void;
}

export class TimingWheel implements Timers {
  /** The clock's last reading relative to the wheel's start: delays count from here. */
  #now = 0;
  /** Everything up to and including this tick has fired. */
  #tick = 0;
  /** The three levels cover ticks [windowStart, windowStart + WINDOW). */
  #windowStart = 0;
  /** The tick for which the outside has been asked to call. */
  #wakeAt = Number.POSITIVE_INFINITY;
  #isAdvancing = false;
  readonly #origin: number;
  readonly #slots: Timer[] = Array.from({ length: LEVELS * SLOTS }, makeSlot);
  readonly #later: Timer = makeSlot();
  /** A bit for each slot that may hold timers; cancelling leaves it set, the next search clears it. */
  readonly #occupied = new Int32Array((LEVELS * SLOTS) / 32);
  readonly #onError: (error: unknown) => void;
  readonly #onEarlier: ((atMs: number) => void) | undefined;

  constructor(options: TimingWheelOptions) {
    this.#origin = options.nowMs;
    this.#onError = options.onError;
    this.#onEarlier = options.onEarlier;
  }

  /** The clock's last reading that the wheel was given. */
  get nowMs(): number {
    return this.#origin + this.#now;
  }

  /** Tells the time without firing anything: done when a turn begins, so that delays count from then. */
  setTime(nowMs: number): void {
    const now = nowMs - this.#origin;
    if (now > this.#now) this.#now = now;
  }

  /** Fires `timer` once, `delayMs` or up to a millisecond more from the wheel's time. It must not be scheduled. */
  schedule(timer: Timer, delayMs: number): void {
    const earliest = this.#tick + 1;
    let deadline = Math.ceil(this.#now + delayMs);
    if (!(deadline >= earliest)) deadline = earliest;
    timer.deadline = deadline;
    this.#link(timer);
    if (deadline < this.#wakeAt) this.#askFor(deadline);
  }

  /** schedule() for a timer that may be scheduled already: the new delay replaces the old one. */
  reschedule(timer: Timer, delayMs: number): void {
    if (timer.next !== null) unlink(timer);
    this.schedule(timer, delayMs);
  }

  /** reschedule(), unless the timer fires earlier as it is. */
  hasten(timer: Timer, delayMs: number): void {
    if (timer.next === null || this.#now + delayMs < timer.deadline) this.reschedule(timer, delayMs);
  }

  /** The timer does not fire. Nothing happens when it is not scheduled. */
  cancel(timer: Timer): void {
    if (timer.next === null) return;
    unlink(timer);
  }

  /**
   * Fires all timers whose delay has passed at `nowMs`, earliest first, those of one millisecond in the order they were
   * scheduled. What their callbacks schedule fires in a later millisecond. A time before the last one is taken as that.
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
   * When advance() is needed next, on the wheel's clock: never later than the first timer, perhaps earlier. Infinity when
   * there is no timer. The wheel counts on being called then.
   */
  nextWakeMs(): number {
    this.#wakeAt = this.#nextOccupiedTick();
    return this.#origin + this.#wakeAt;
  }

  #askFor(deadline: number): void {
    this.#wakeAt = deadline;
    this.#onEarlier?.(this.#origin + deadline);
  }

  #link(timer: Timer): void {
    const offset = timer.deadline - this.#windowStart;
    if (offset >= WINDOW) {
      append(this.#later, timer);
      return;
    }
    // The level is that of the highest digit (base 256) in which the deadline differs from the current tick, so the
    // slots of a level that are still to come all lie above the current digit, and none is used twice.
    const low = offset | 0;
    const difference = low ^ (this.#tick - this.#windowStart);
    let slot: number;
    if (difference < SLOTS) slot = low & SLOT_MASK;
    else if (difference < SLOTS * SLOTS) slot = SLOTS + ((low >>> SLOT_BITS) & SLOT_MASK);
    else slot = 2 * SLOTS + (low >>> (2 * SLOT_BITS));
    this.#occupied[slot >>> 5]! |= 1 << (slot & 31);
    append(this.#slots[slot]!, timer);
  }

  /** The first tick at which a slot fires or must be spread over the level below; Infinity when there is none. */
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

  /** The first slot of `level` above `digit` that holds timers, or -1. */
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

  /** Brings the window to `tick` and takes in what now lies inside. No timer below `tick` may be left. */
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

/** The head of an empty circular list. */
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
