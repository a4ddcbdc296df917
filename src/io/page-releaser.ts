// Returns unused pages of a thread's memory to the kernel, once a second.

import type { MemoryUse } from './memory.js';
import type { NativeShim } from './shim.js';
import type { Transport } from './transport/transport.js';

const STEP_MS = 1000;
/** Pause between parts of a large release. */
const PART_MS = 10;
/** The C library keeps memory that the shim has freed. It is trimmed when this much may have been freed. */
const TRIM_BYTES = 32 * 1024 * 1024;

export class PageReleaser {
  readonly #transport: Transport;
  readonly #shim: Pick<NativeShim, 'releasePages' | 'trimMemory'>;
  readonly #onStep: (use: MemoryUse) => void;
  #timer: NodeJS.Timeout;
  /** Maximum of unsent bytes since the last trim. */
  #peakUnsent = 0;

  /** `onStep` is called once a second. */
  constructor(
    transport: Transport,
    shim: Pick<NativeShim, 'releasePages' | 'trimMemory'>,
    onStep: (use: MemoryUse) => void = () => {},
  ) {
    this.#transport = transport;
    this.#shim = shim;
    this.#onStep = onStep;
    this.#timer = setTimeout(this.#step, STEP_MS).unref();
  }

  /** Called before the transport is destroyed. */
  close(): void {
    clearTimeout(this.#timer);
  }

  readonly #step = (): void => {
    const { memory } = this.#transport;
    // Blocks that were released in the last turn are not free before this.
    this.#transport.settle();
    const hasMore = memory.pageReturn.step(this.#release);
    const use = memory.use();
    this.#onStep(use);
    this.#trim(use.unsent);
    this.#sleep(hasMore);
  };

  readonly #part = (): void => {
    this.#sleep(this.#transport.memory.pageReturn.purge(this.#release));
  };

  #sleep(hasMore: boolean): void {
    this.#timer = (hasMore ? setTimeout(this.#part, PART_MS) : setTimeout(this.#step, STEP_MS)).unref();
  }

  readonly #release = (start: number, bytes: number): void => {
    this.#shim.releasePages(this.#transport.memory.bytes, start, bytes);
  };

  #trim(unsent: number): void {
    this.#peakUnsent = Math.max(this.#peakUnsent, unsent);
    if (this.#peakUnsent - unsent < TRIM_BYTES) return;
    this.#peakUnsent = unsent;
    this.#shim.trimMemory();
  }
}
