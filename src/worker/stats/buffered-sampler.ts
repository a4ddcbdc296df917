// Updates the gauges of buffered bytes: polls all connections once a second, in steps of bounded length.

import { BufferedBytes } from '../../io/buffered-bytes.js';
import type { Transport } from '../../io/transport/transport.js';

const ROUND_MS = 1000;
/** Some hundred microseconds of polling per step, and the pause between steps. */
const CONNECTIONS_PER_STEP = 1000;
const STEP_MS = 20;

export class BufferedSampler {
  readonly #transport: Transport;
  readonly #sums = new BufferedBytes();
  #next = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(transport: Transport) {
    this.#transport = transport;
    this.#sleep(ROUND_MS);
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  #sleep(milliseconds: number): void {
    this.#timer = setTimeout(this.#step, milliseconds).unref();
  }

  readonly #step = (): void => {
    const from = this.#next;
    // If this round fails, the next one begins at the first connection.
    this.#next = 0;
    try {
      this.#next = this.#transport.addBuffered(this.#sums, from, CONNECTIONS_PER_STEP);
      if (this.#next === 0) this.#sums.finishRound();
    } finally {
      this.#sleep(this.#next === 0 ? ROUND_MS : STEP_MS);
    }
  };
}
