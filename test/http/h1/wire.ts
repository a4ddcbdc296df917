// The environment of a codec in tests: turns as the transport runs them, and the sent bytes as a peer sees them.
//
// Memory is only read when a turn ends, as the shim does, and everything that becomes invalid then is overwritten: a codec that
// keeps a range too long or reuses one too early fails.

import type { ByteSink } from '../../../src/http/codec/streams.js';
import { Memory } from '../../../src/io/memory.js';

const RECEIVE_BYTES = 256 * 1024;
const SCRATCH_BYTES = 256 * 1024;

export class Wire implements ByteSink {
  readonly memory: Memory;
  isPaused = false;
  /** Everything sent in finished turns. */
  sent = '';
  readonly #ranges: [number, number][] = [];
  #waits = false;

  constructor(memory = sharedMemory) {
    this.memory = memory;
  }

  /** Ranges submitted in this turn. */
  get sends(): number {
    return this.#ranges.length;
  }

  send(offset: number, length: number): void {
    if (length <= 0) throw new Error(`a range of ${length} bytes was sent`);
    this.#ranges.push([offset, length]);
  }
  pause(): void {
    if (this.isPaused) throw new Error('paused twice');
    this.isPaused = true;
  }
  resume(): void {
    if (!this.isPaused) throw new Error('resumed twice');
    this.isPaused = false;
  }

  /** Sent bytes of earlier turns that the peer has not read. */
  pendingBytes = 0;

  requestTurn(): void {
    this.#waits = true;
  }

  /** Whether the codec has requested another turn; resets the request. */
  takeWait(): boolean {
    const waits = this.#waits;
    this.#waits = false;
    return waits;
  }

  /** Puts received bytes (Latin-1) where the shim would, calls `handle`, and ends the turn. */
  turn(text: string, handle: (offset: number, length: number) => void): void {
    const { bytes } = this.memory;
    // Anywhere but at offset 0, and never twice at the same offset.
    const offset = 64 + (this.memory.step % 61);
    for (let i = 0; i < text.length; i++) bytes[offset + i] = text.charCodeAt(i);
    handle(offset, text.length);
    for (const [start, length] of this.#ranges) this.sent += this.memory.text(start, start + length);
    this.#ranges.length = 0;
    bytes.fill(0xee, 0, offset + text.length);
    const scratch = this.memory.scratch(0);
    bytes.fill(0xee, RECEIVE_BYTES, scratch);
    this.memory.endTurn();
  }

  take(): string {
    const { sent } = this;
    this.sent = '';
    return sent;
  }
}

/** A thread has one memory, and so has a test. */
const sharedMemory = newMemory();

export function newMemory(): Memory {
  return new Memory({
    receiveBytes: RECEIVE_BYTES,
    scratchBytes: SCRATCH_BYTES,
    arenaBytes: 40 * 1024 * 1024,
  });
}

/** Splits a text at these positions, which are fractions of its length in any order. */
export function pieces(text: string, cuts: readonly number[]): string[] {
  const places = [0, ...cuts.map((cut) => Math.floor(cut * text.length)).sort((a, b) => a - b), text.length];
  return places.slice(1).map((place, index) => text.slice(places[index], place));
}
