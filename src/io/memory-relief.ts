// Relieves memory pressure on a thread: ends connections that hold memory and wait only for their peers, the longest-holding first, and
// serves connections that wait for room.
//
// It runs at the end of a turn, so no code of an ended connection is on the stack, and its memory can be used in the next turn.

import type { Memory } from './memory.js';
import type { Clock } from './time/clock.js';
import type { Stall } from './transport/connection-handler.js';
import type { Transport } from './transport/transport.js';

/** While memory is short but not scarce, a connection is spared if its peer has sent, or read unsent bytes, within this time. */
const SENDING_STALL_MS = 1000;
const READING_STALL_MS = 5000;
/** A connection that holds less than this is spared too while memory is not scarce. */
const MIN_BYTES = 4096;
/** Pause before the next scan if a scan did not free enough, unless memory becomes scarce meanwhile. */
const PAUSE_MS = 100;
/** Interval at which waiting connections are served if there is no turn. */
const WAITING_MS = 20;

/** The transport that owns the memory. */
export type Relieved = Pick<Transport, 'memory' | 'onPressure' | 'stalls' | 'endStall' | 'beginTurn' | 'settle'>;

export class MemoryRelief {
  /** Number of connections ended so far. */
  ended = 0;
  readonly #transport: Relieved;
  readonly #memory: Memory;
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  #nextScanMs = 0;
  #wasScarce = false;
  #timer: NodeJS.Timeout | undefined;
  /** Unsent bytes of slow readers at the last scan, by connection ID. */
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
    if (pressure.isShort && this.#mayScan) this.#endStalled();
    if (pressure.waiting.isEmpty) return;
    pressure.waiting.serve(pressure.room);
    if (!pressure.waiting.isEmpty) this.#timer ??= setTimeout(this.#retry, WAITING_MS).unref();
  }

  readonly #retry = (): void => {
    this.#timer = undefined;
    // Blocks that were released in the last turn become free only here.
    this.#transport.settle();
    this.#relieve();
  };

  get #mayScan(): boolean {
    const isWorse = this.#memory.pressure.isScarce && !this.#wasScarce;
    return isWorse || this.#clock.monotonicMs >= this.#nextScanMs;
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
      if (!pressure.isScarce && (stall.bytes < MIN_BYTES || !this.#isStalled(stall, now))) continue;
      this.#transport.endStall(stall);
      excess -= stall.bytes;
      this.ended++;
    }
    this.#nextScanMs = excess > 0 ? now + PAUSE_MS : now;
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

  #isStalled({ id, movedMs, unsent }: Stall, now: number): boolean {
    if (unsent === 0) return now - movedMs >= SENDING_STALL_MS;
    return now - this.#readers.get(id)!.sinceMs >= READING_STALL_MS;
  }
}

/** A slow reader. Its progress shows only in a decrease of its unsent bytes. */
interface Reader {
  readonly unsent: number;
  readonly sinceMs: number;
}

function byAge(one: Stall, other: Stall): number {
  return one.sinceMs - other.sinceMs;
}
