// Records how long the turns of this thread's event loop take, and how late it wakes up (enable_dispatcher_stats).

import { LOOP_UNDELAYED, type NativeShim } from '../io/shim.js';
import { DispatcherStats } from './layouts/server.js';
import type { Scope } from './thread-stats.js';

const RECORD_EVERY_MS = 250;
/** A busy loop turns some 20,000 times a second. */
const ROOM = 16_384;

export class LoopWatch {
  readonly #samples = new Uint32Array(new SharedArrayBuffer((1 + 2 * ROOM) * Uint32Array.BYTES_PER_ELEMENT));
  readonly #scope: Scope;
  readonly #timer: NodeJS.Timeout;

  /** `scope` has the layout DispatcherStats. The watch ends with the thread, its timer with close(). */
  constructor(shim: Pick<NativeShim, 'watchLoop'>, scope: Scope) {
    this.#scope = scope;
    shim.watchLoop(this.#samples);
    this.#timer = setInterval(() => this.#record(), RECORD_EVERY_MS).unref();
  }

  close(): void {
    clearInterval(this.#timer);
    this.#record();
  }

  #record(): void {
    const { at } = DispatcherStats;
    const samples = this.#samples;
    const end = 1 + 2 * samples[0]!;
    for (let index = 1; index < end; index += 2) {
      this.#scope.record(at.loop_duration_us, samples[index]!);
      const delay = samples[index + 1]!;
      if (delay !== LOOP_UNDELAYED) this.#scope.record(at.poll_delay_us, delay);
    }
    samples[0] = 0;
  }
}
