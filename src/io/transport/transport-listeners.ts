// The listeners of a thread's transport: whom new connections are given to.

import type { ListenerHandler } from './connection-handler.js';

export class TransportListeners {
  readonly #handlers = new Map<number, ListenerHandler>();
  /** Those among them that were removed, and may still accept the rest of their queue. */
  readonly #leaving = new Set<number>();
  /** The one that has been given connections of this batch last. */
  #accepting: ListenerHandler | undefined;

  add(id: number, handler: ListenerHandler): void {
    this.#handlers.set(id, handler);
  }

  get(id: number): ListenerHandler | undefined {
    return this.#handlers.get(id);
  }

  /** `acceptsRest`: what the kernel has queued is still to come. */
  remove(id: number, acceptsRest: boolean): void {
    if (acceptsRest) this.#leaving.add(id);
    else {
      this.#handlers.delete(id);
      this.#leaving.delete(id);
    }
  }

  get hasLeaving(): boolean {
    return this.#leaving.size > 0;
  }

  /** Lets go of those that have accepted the rest: that so many are `open` is all that the shim tells of it. */
  forgetLeft(open: number): void {
    if (open > this.#handlers.size - this.#leaving.size) return;
    for (const id of this.#leaving) this.#handlers.delete(id);
    this.#leaving.clear();
  }

  /** `handler` is given a connection of this batch. */
  beginAccepting(handler: ListenerHandler): void {
    if (handler === this.#accepting) return;
    this.endAccepting();
    this.#accepting = handler;
  }

  /** No more connections come for the one that was given some last. */
  endAccepting(): void {
    const handler = this.#accepting;
    this.#accepting = undefined;
    handler?.onAccepted();
  }

  clear(): void {
    this.#handlers.clear();
  }
}
