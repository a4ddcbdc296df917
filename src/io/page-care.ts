// Looks after a thread's memory once a second: gives pages that are not used any more back to the kernel.

import type { MemoryUse } from './memory.js';
import type { NativeShim } from './shim.js';
import type { Transport } from './transport/transport.js';

const STEP_MS = 1000;
/** Between two parts of what is given back at a time. */
const PART_MS = 10;
/** What the shim has freed stays with the C library, which is asked for it where it is at least so much. */
const TRIM_BYTES = 32 * 1024 * 1024;

export class PageCare {
  readonly #transport: Transport;
  readonly #shim: Pick<NativeShim, 'releasePages' | 'trimMemory'>;
  readonly #onStep: (use: MemoryUse) => void;
  #timer: NodeJS.Timeout;
  /** Most that was unsent since the C library was asked. */
  #mostUnsent = 0;

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
    // What the last turn has released may be all that there is.
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
    this.#mostUnsent = Math.max(this.#mostUnsent, unsent);
    if (this.#mostUnsent - unsent < TRIM_BYTES) return;
    this.#mostUnsent = unsent;
    this.#shim.trimMemory();
  }
}
