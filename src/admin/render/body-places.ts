// Places for bodies that are being made: as many as memory allows. A client that takes next to nothing of its body gives its
// place up when others wait for one.

import { getLogger } from '../../log/logger.js';

export interface PlacedBody {
  /** What its client has taken so far. */
  readonly takenBytes: number;
  /** Something of it is there, and the client does not take it. */
  readonly waitsForClient: boolean;
  /** Ends it, and the answer that it belongs to; its place is released. */
  cut(): void;
}

export interface PlacesOptions {
  readonly places: number;
  /** How long a client is watched before it counts as slow. */
  readonly roundMs: number;
  /** Who takes less than this in a round may be cut. */
  readonly leastBytes: number;
  /** How long a body may wait for a place. */
  readonly maxWaitMs: number;
}

interface Waiting {
  readonly body: PlacedBody;
  readonly sinceMs: number;
  readonly admit: () => void;
  readonly refuse: (error: Error) => void;
}

/** What was taken when a round began; undefined for a body that came after that. */
type AtRound = number | undefined;

/** No place has become free in time. */
export class NoPlaceError extends Error {
  constructor(places: number) {
    super(`${places} large answers are being sent already: ask again later`);
    this.name = 'NoPlaceError';
  }
}

/** The client has lost its place; the log has it already. */
export class LostPlaceError extends Error {
  constructor() {
    super('the client took next to nothing of it, and others waited');
    this.name = 'LostPlaceError';
  }
}

/** The server ends, and with it what makes bodies: nothing has failed. */
export class EndingError extends Error {
  constructor() {
    super('the server is ending');
    this.name = 'EndingError';
  }
}

const logger = getLogger('admin');

export class BodyPlaces {
  readonly #options: PlacesOptions;
  readonly #held = new Map<PlacedBody, AtRound>();
  /** In the order in which they came. */
  #waiting: Waiting[] = [];
  /** Runs while somebody waits. */
  #rounds: NodeJS.Timeout | undefined;

  constructor(options: PlacesOptions) {
    this.#options = options;
  }

  /** Bodies that have a place. */
  get size(): number {
    return this.#held.size;
  }

  /** Resolves when the body has a place, which it keeps until release(). Rejects with a NoPlaceError when none becomes free in time. */
  admit(body: PlacedBody): Promise<void> {
    if (this.#held.size < this.#options.places) {
      this.#held.set(body, undefined);
      return Promise.resolve();
    }
    this.#watch();
    return new Promise((admit, refuse) => {
      this.#waiting.push({ body, sinceMs: performance.now(), admit, refuse });
    });
  }

  /** The body has ended, or waits no longer. May be called again. */
  release(body: PlacedBody): void {
    if (!this.#held.delete(body)) return;
    const next = this.#waiting.shift();
    if (next === undefined) return;
    this.#held.set(next.body, undefined);
    next.admit();
  }

  /** Nobody gets a place any more. */
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
      logger.warning(`cut ${slow.length} client(s) of large answers that took next to nothing of them: others waited`);
    }
    this.#refuseLate();
    this.#mark();
    if (this.#waiting.length > 0) return;
    clearInterval(this.#rounds);
    this.#rounds = undefined;
  }

  #mark(): void {
    for (const body of this.#held.keys()) this.#held.set(body, body.takenBytes);
  }

  #slowest(): PlacedBody[] {
    const { leastBytes } = this.#options;
    const slow: { body: PlacedBody; taken: number }[] = [];
    for (const [body, atRound] of this.#held) {
      if (atRound === undefined || !body.waitsForClient) continue;
      const taken = body.takenBytes - atRound;
      if (taken < leastBytes) slow.push({ body, taken });
    }
    return slow.sort((a, b) => a.taken - b.taken).map(({ body }) => body);
  }

  #refuseLate(): void {
    const { places, maxWaitMs } = this.#options;
    const since = performance.now() - maxWaitMs;
    for (const { sinceMs, refuse } of this.#waiting) {
      if (sinceMs < since) refuse(new NoPlaceError(places));
    }
    this.#waiting = this.#waiting.filter(({ sinceMs }) => sinceMs >= since);
  }
}
