// The pieces of a body that a render thread produces, as they arrive on the primary.

import type { MessagePort } from 'node:worker_threads';
import { LostSlotError, type SlotHolder } from './body-slots.js';

/** Messages of a thread: a piece, the end with an optional error, or a request for data that only the primary has. */
export type RenderMessage = Uint8Array | { readonly error: string | undefined } | 'supply';
/** Messages to a thread: credit for more pieces, or the requested data. */
export type RenderReply = number | { readonly supply: unknown };

/** Pieces that a thread may be ahead of the client: about half a megabyte. */
export const WINDOW = 16;

export class RenderStream implements AsyncIterableIterator<Uint8Array>, SlotHolder {
  readBytes = 0;
  /** The thread has sent a message. */
  hasBegun = false;
  readonly #port: MessagePort;
  readonly #supply: () => unknown;
  readonly #arrived: Uint8Array[] = [];
  /** Pieces that were consumed and not yet credited to the thread. */
  #uncredited = 0;
  #isEnded = false;
  #error: Error | undefined;
  #wake: (() => void) | undefined;
  #whenCut: (() => void) | undefined;
  readonly #done: () => void;

  /**
   * `supply`: returns data that the thread may request. `done`: called when nothing of the body is buffered here any more.
   */
  constructor(port: MessagePort, supply: (() => unknown) | undefined, done: () => void) {
    this.#port = port;
    this.#supply = supply ?? (() => undefined);
    this.#done = done;
    port.on('message', (message: RenderMessage) => this.#receive(message));
  }

  get waitsForClient(): boolean {
    return this.#arrived.length > 0;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Rejects if rendering has failed. */
  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    for (;;) {
      const piece = this.#arrived.shift();
      if (piece !== undefined) {
        this.#take(piece);
        return { done: false, value: piece };
      }
      if (this.#error !== undefined) throw this.#error;
      if (this.#isEnded) return { done: true, value: undefined };
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** Called when no more pieces are needed: the thread stops rendering. */
  async return(): Promise<IteratorResult<Uint8Array, undefined>> {
    this.#drop(undefined);
    return { done: true, value: undefined };
  }

  whenCut(listener: () => void): void {
    this.#whenCut = listener;
  }

  /** Ends the body. The reader is notified and gets an error for the next piece. */
  cut(): void {
    this.#drop(new LostSlotError());
    this.#whenCut?.();
  }

  /** Ends the body with an error, which follows the pieces that have arrived. */
  fail(error: Error): void {
    this.#end(error);
  }

  #receive(message: RenderMessage): void {
    this.hasBegun = true;
    if (this.#isEnded) return;
    if (message === 'supply') return this.#sendSupply();
    if (!(message instanceof Uint8Array)) {
      return this.#end(message.error === undefined ? undefined : new Error(message.error));
    }
    this.#arrived.push(message);
    this.#wake?.();
  }

  #take(piece: Uint8Array): void {
    this.readBytes += piece.length;
    if (this.#isEnded && this.#arrived.length === 0) this.#done();
    if (++this.#uncredited < WINDOW / 2) return;
    if (!this.#isEnded) this.#post(this.#uncredited);
    this.#uncredited = 0;
  }

  #sendSupply(): void {
    try {
      this.#post({ supply: this.#supply() });
    } catch (error) {
      this.#end(error as Error);
    }
  }

  #post(reply: RenderReply): void {
    this.#port.postMessage(reply);
  }

  #drop(error: Error | undefined): void {
    const waited = this.#arrived.splice(0).length > 0;
    if (!this.#isEnded) return this.#end(error);
    this.#error ??= error;
    if (waited) this.#done();
  }

  #end(error: Error | undefined): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#error = error;
    this.#port.close();
    if (this.#arrived.length === 0) this.#done();
    this.#wake?.();
  }
}
