// The pieces of a body that a render thread makes, as they arrive on the primary.

import type { MessagePort } from 'node:worker_threads';
import { LostPlaceError, type PlacedBody } from './body-places.js';

/** What a thread posts: a piece, that there are no more of them and why, or that it needs what only the primary has. */
export type RenderMessage = Uint8Array | { readonly error: string | undefined } | 'supply';
/** What goes the other way: how many further pieces are wanted, or what was asked for. */
export type RenderReply = number | { readonly supply: unknown };

/** Pieces that a thread may be ahead of the client: about half a megabyte. */
export const WINDOW = 16;

export class RenderStream implements AsyncIterableIterator<Uint8Array>, PlacedBody {
  takenBytes = 0;
  /** A thread has said something. */
  hasBegun = false;
  readonly #port: MessagePort;
  readonly #supply: () => unknown;
  readonly #arrived: Uint8Array[] = [];
  /** Pieces that were taken and not yet told to the thread. */
  #taken = 0;
  #isEnded = false;
  #error: Error | undefined;
  #wake: (() => void) | undefined;
  #whenCut: (() => void) | undefined;
  readonly #done: () => void;

  /** `supply` gives what the thread may ask for. `done` is called when nothing of the body is kept here any more. */
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

  /** Rejects when rendering has failed. */
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

  /** The pieces are no longer wanted: the thread stops making them. */
  async return(): Promise<IteratorResult<Uint8Array, undefined>> {
    this.#drop(undefined);
    return { done: true, value: undefined };
  }

  whenCut(listener: () => void): void {
    this.#whenCut = listener;
  }

  /** Whoever reads the pieces is told, and gets an error for the next one. */
  cut(): void {
    this.#drop(new LostPlaceError());
    this.#whenCut?.();
  }

  /** Nothing more will arrive. What has arrived is given out before the error. */
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
    this.takenBytes += piece.length;
    if (this.#isEnded && this.#arrived.length === 0) this.#done();
    if (++this.#taken < WINDOW / 2) return;
    if (!this.#isEnded) this.#post(this.#taken);
    this.#taken = 0;
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
