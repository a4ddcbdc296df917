// Slots for bodies that are being rendered, as many as memory allows. A client that reads almost nothing of its body loses
// its slot if others wait for one.

import { getLogger } from '../../log/logger.js';

export interface SlotHolder {
  /** Bytes that the client has read so far. */
  readonly readBytes: number;
  /** Data is available, and the client does not read it. */
  readonly waitsForClient: boolean;
  /** Ends the body and the answer that it belongs to. Its slot is released. */
  cut(): void;
}

export interface SlotOptions {
  readonly slots: number;
  /** How long a client is observed before it counts as slow. */
  readonly roundMs: number;
  /** A client that reads less than this in a round may be cut off. */
  readonly minBytes: number;
  /** How long a body may wait for a slot. */
  readonly maxWaitMs: number;
}

interface Waiting {
  readonly body: SlotHolder;
  readonly sinceMs: number;
  readonly admit: () => void;
  readonly refuse: (error: Error) => void;
}

/** Bytes read at the beginning of a round; undefined for a body added later. */
type AtRound = number | undefined;

/** No slot became free in time. */
export class NoSlotError extends Error {
  constructor(slots: number) {
    super(`${slots} large answers are being sent already: retry later`);
    this.name = 'NoSlotError';
  }
}

/** The client has lost its slot, which was already logged. */
export class LostSlotError extends Error {
  constructor() {
    super('the client read almost nothing of the answer while others waited');
    this.name = 'LostSlotError';
  }
}

/** The server is ending, and rendering with it: not a failure. */
export class EndingError extends Error {
  constructor() {
    super('the server is ending');
    this.name = 'EndingError';
  }
}

const logger = getLogger('admin');

export class BodySlots {
  readonly #options: SlotOptions;
  readonly #held = new Map<SlotHolder, AtRound>();
  /** In order of arrival. */
  #waiting: Waiting[] = [];
  /** Runs while bodies wait. */
  #rounds: NodeJS.Timeout | undefined;

  constructor(options: SlotOptions) {
    this.#options = options;
  }

  /** Number of bodies with a slot. */
  get size(): number {
    return this.#held.size;
  }

  /**
   * Resolves when the body has a slot, which it keeps until release(). Rejects with a NoSlotError if none becomes free in
   * time.
   */
  admit(body: SlotHolder): Promise<void> {
    if (this.#held.size < this.#options.slots) {
      this.#held.set(body, undefined);
      return Promise.resolve();
    }
    this.#watch();
    return new Promise((admit, refuse) => {
      this.#waiting.push({ body, sinceMs: performance.now(), admit, refuse });
    });
  }

  /** Called when the body has ended. May be called again. */
  release(body: SlotHolder): void {
    if (!this.#held.delete(body)) return;
    const next = this.#waiting.shift();
    if (next === undefined) return;
    this.#held.set(next.body, undefined);
    next.admit();
  }

  /** Refuses all waiting bodies and gives no more slots. */
  close(reason: Error): void {
    clearInterval(this.#rounds);
    for (const { refuse } of this.#waiting.splice(0)) refuse(reason);
  }

  #watch(): void {
    if (this.#rounds !== undefined) return;
    this.#mark();
    this.#rounds = setInterval(() => this.#round(), this.#options.roundMs).unref();
  }

  #round(): void {
    const slow = this.#slowest().slice(0, this.#waiting.length);
    for (const body of slow) body.cut();
    if (slow.length > 0) {
      logger.warning(`cut off ${slow.length} client(s) of large answers that read almost nothing while others waited`);
    }
    this.#refuseLate();
    this.#mark();
    if (this.#waiting.length > 0) return;
    clearInterval(this.#rounds);
    this.#rounds = undefined;
  }

  #mark(): void {
    for (const body of this.#held.keys()) this.#held.set(body, body.readBytes);
  }

  #slowest(): SlotHolder[] {
    const { minBytes } = this.#options;
    const slow: { body: SlotHolder; readBytes: number }[] = [];
    for (const [body, atRound] of this.#held) {
      if (atRound === undefined || !body.waitsForClient) continue;
      const readBytes = body.readBytes - atRound;
      if (readBytes < minBytes) slow.push({ body, readBytes });
    }
    return slow.sort((a, b) => a.readBytes - b.readBytes).map(({ body }) => body);
  }

  #refuseLate(): void {
    const { slots, maxWaitMs } = this.#options;
    const since = performance.now() - maxWaitMs;
    for (const { sinceMs, refuse } of this.#waiting) {
      if (sinceMs < since) refuse(new NoSlotError(slots));
    }
    this.#waiting = this.#waiting.filter(({ sinceMs }) => sinceMs >= since);
  }
}
