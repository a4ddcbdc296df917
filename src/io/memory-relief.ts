// What is done when a thread's memory is short: connections that hold some of it, and wait for nobody but their own peers, are ended,
// the one that has held it longest first; and connections that wait for room get it when there is some.
//
// It is done at the end of a turn. So nothing of a connection is on the stack when it is ended, and what it held can be used in the next.

import type { Memory } from './memory.js';
import type { Clock } from './time/clock.js';
import type { Stall } from './transport/connection-handler.js';
import type { Transport } from './transport/transport.js';

/** While memory is short, but not scarce, those that have moved since are spared: have sent something, or taken some of what is unsent. */
const SENDING_STANDSTILL_MS = 1000;
const READING_STANDSTILL_MS = 5000;
/** Nor is a connection worth ending then that holds less than this. */
const LEAST_BYTES = 4096;
/** How long none is looked for when those that were found were not enough, unless memory becomes scarce meanwhile. */
const PAUSE_MS = 100;
/** How often it looks after connections that wait, when no turn comes. */
const WAITING_MS = 20;

/** The transport whose memory it is. */
export type Relieved = Pick<Transport, 'memory' | 'onPressure' | 'stalls' | 'endStall' | 'beginTurn' | 'settle'>;

export class MemoryRelief {
  /** How many connections it has ended. */
  ended = 0;
  readonly #transport: Relieved;
  readonly #memory: Memory;
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  #nextLookMs = 0;
  #wasScarce = false;
  #timer: NodeJS.Timeout | undefined;
  /** What was unsent to slow readers at the last look, by id. */
  #readers = new Map<number, Reader>();

  constructor(transport: Relieved, clock: Pick<Clock, 'monotonicMs'>) {
    this.#transport = transport;
    this.#memory = transport.memory;
    this.#clock = clock;
    transport.onPressure = () => this.#relieve();
  }

  #relieve(): void {
    const { pressure } = this.#memory;
    this.#transport.beginTurn();
    this.#memory.collect();
    if (pressure.isShort && this.#mayLook) this.#endStalled();
    if (pressure.waiting.isEmpty) return;
    pressure.waiting.serve(pressure.room);
    if (!pressure.waiting.isEmpty) this.#timer ??= setTimeout(this.#lookAgain, WAITING_MS).unref();
  }

  readonly #lookAgain = (): void => {
    this.#timer = undefined;
    // What was released in the last turn is free only now.
    this.#transport.settle();
    this.#relieve();
  };

  get #mayLook(): boolean {
    const isWorse = this.#memory.pressure.isScarce && !this.#wasScarce;
    return isWorse || this.#clock.monotonicMs >= this.#nextLookMs;
  }

  #endStalled(): void {
    const { pressure } = this.#memory;
    const now = this.#clock.monotonicMs;
    let excess = pressure.excess - this.#memory.restingBytes();
    if (excess <= 0) return;
    const stalls = this.#transport.stalls().sort(byAge);
    this.#observeReaders(stalls, now);
    this.#wasScarce = pressure.isScarce;
    for (const stall of stalls) {
      if (excess <= 0) break;
      if (!pressure.isScarce && (stall.bytes < LEAST_BYTES || !this.#standsStill(stall, now))) continue;
      this.#transport.endStall(stall);
      excess -= stall.bytes;
      this.ended++;
    }
    this.#nextLookMs = excess > 0 ? now + PAUSE_MS : now;
  }

  #observeReaders(stalls: readonly Stall[], now: number): void {
    const before = this.#readers;
    this.#readers = new Map();
    for (const { id, unsent } of stalls) {
      if (unsent === 0) continue;
      const known = before.get(id);
      this.#readers.set(id, known?.unsent === unsent ? known : { unsent, sinceMs: now });
    }
  }

  #standsStill({ id, movedMs, unsent }: Stall, now: number): boolean {
    if (unsent === 0) return now - movedMs >= SENDING_STANDSTILL_MS;
    return now - this.#readers.get(id)!.sinceMs >= READING_STANDSTILL_MS;
  }
}

/** Nothing tells when a peer takes some of many bytes but that they become fewer. */
interface Reader {
  readonly unsent: number;
  readonly sinceMs: number;
}

function byAge(one: Stall, other: Stall): number {
  return one.sinceMs - other.sinceMs;
}
