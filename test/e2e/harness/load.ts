// Requests that keep coming while something changes, and what becomes of them.

import type { Teardown } from './environment.js';

/** Short enough to meet whatever goes wrong for a moment, long enough to leave the machine to what is asked, and to other tests. */
export const BETWEEN_REQUESTS_MS = 5;

/** Clients that ask again and again, until the end of the test at the latest. */
export class Load {
  answered = 0;
  /** Messages of what `ask` has thrown. */
  readonly failures: string[] = [];
  readonly #clients: Promise<unknown>;
  #isOver = false;

  constructor(t: Teardown, clients: number, ask: () => Promise<unknown>) {
    this.#clients = Promise.all(Array.from({ length: clients }, () => this.#run(ask)));
    t.teardown(() => this.end());
  }

  /** Resolves when nothing is under way any more. */
  async end(): Promise<void> {
    this.#isOver = true;
    await this.#clients;
  }

  async #run(ask: () => Promise<unknown>): Promise<void> {
    while (!this.#isOver) {
      try {
        await ask();
        this.answered++;
      } catch (error) {
        this.failures.push(String(error));
      }
      await new Promise((resolve) => setTimeout(resolve, BETWEEN_REQUESTS_MS));
    }
  }
}
