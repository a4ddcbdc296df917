// Continuous requests while something changes, and their failures.

import type { Teardown } from './environment.js';

/** Short enough to meet brief failures, long enough to leave CPU time to the server and to other tests. */
export const BETWEEN_REQUESTS_MS = 5;

/** Clients that repeat a request until end(), at the latest until the end of the test. */
export class Load {
  answered = 0;
  /** Messages of the errors that `ask` has thrown. */
  readonly failures: string[] = [];
  readonly #clients: Promise<unknown>;
  #isOver = false;

  constructor(t: Teardown, clients: number, ask: () => Promise<unknown>) {
    this.#clients = Promise.all(Array.from({ length: clients }, () => this.#run(ask)));
    t.teardown(() => this.end());
  }

  /** Stops the clients; resolves when no request is in flight. */
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
