// The listeners of a thread's transport.

import type { ListenerHandler } from './connection-handler.js';

export class TransportListeners {
  readonly #handlers = new Map<number, ListenerHandler>();
  /** Removed listeners that may still accept the rest of their backlog. */
  readonly #draining = new Set<number>();
  /** The listener that last got a connection of this batch. */
  #accepting: ListenerHandler | undefined;

  add(id: number, handler: ListenerHandler): void {
    this.#handlers.set(id, handler);
  }

  get(id: number): ListenerHandler | undefined {
    return this.#handlers.get(id);
  }

  /** `acceptsRest`: connections in the backlog are still delivered. */
  remove(id: number, acceptsRest: boolean): void {
    if (acceptsRest) this.#draining.add(id);
    else {
      this.#handlers.delete(id);
      this.#draining.delete(id);
    }
  }

  get hasDraining(): boolean {
    return this.#draining.size > 0;
  }

  /**
   * Removes listeners that have accepted their backlog. The shim reports only the number of `open` listeners, so they are removed together.
   */
  removeDrained(open: number): void {
    if (open > this.#handlers.size - this.#draining.size) return;
    for (const id of this.#draining) this.#handlers.delete(id);
    this.#draining.clear();
  }

  /** Called before `handler` gets a connection of this batch. */
  beginAccepting(handler: ListenerHandler): void {
    if (handler === this.#accepting) return;
    this.endAccepting();
    this.#accepting = handler;
  }

  /** Called when no more connections follow for the current listener. */
  endAccepting(): void {
    const handler = this.#accepting;
    this.#accepting = undefined;
    handler?.onAccepted();
  }

  clear(): void {
    this.#handlers.clear();
  }
}
