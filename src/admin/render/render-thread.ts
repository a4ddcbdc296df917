// The code of a render thread: renders bodies and posts their pieces, never more than the primary has given credit for.

import type { MessagePort } from 'node:worker_threads';
import { messageOf } from '../../common/errors/errors.js';
import { nextTurn } from '../../common/time/next-turn.js';
import { type RenderMessage, type RenderReply, WINDOW } from './render-stream.js';
import { RENDERERS, type RenderKind, type RenderRequests, type RenderSupplies } from './renderers.js';

/** One body. Closing the other end of the port ends it early. */
export interface RenderTask<K extends RenderKind = RenderKind> {
  readonly kind: K;
  readonly request: RenderRequests[K];
  readonly port: MessagePort;
}

/** Resolves when the body is complete, has failed, or is no longer needed. */
export default async function render<K extends RenderKind>({ kind, request, port }: RenderTask<K>): Promise<void> {
  const client = new Client(port);
  const post = (message: RenderMessage, transfer: ArrayBuffer[] = []) => port.postMessage(message, transfer);
  try {
    const ask = () => client.ask() as Promise<RenderSupplies[K]>;
    for await (const piece of RENDERERS[kind](request, ask)) {
      if (piece.length > 0) {
        post(piece, transferable(piece));
        client.useCredit();
      }
      await client.waitForCredit();
      if (client.isClosed) return;
    }
    post({ error: undefined });
  } catch (error) {
    post({ error: messageOf(error) });
  }
}

/** The primary's end: its credit for pieces, and requested data. */
class Client {
  isClosed = false;
  readonly #port: MessagePort;
  #credit = WINDOW;
  #supply: unknown;
  #wake: (() => void) | undefined;

  constructor(port: MessagePort) {
    this.#port = port;
    port.on('message', (reply: RenderReply) => {
      if (typeof reply === 'number') this.#credit += reply;
      else this.#supply = reply.supply;
      this.#wake?.();
    });
    port.on('close', () => {
      this.isClosed = true;
      this.#wake?.();
    });
  }

  /** Requests the primary's data for this kind of body. Rejects if the body is no longer needed. */
  async ask(): Promise<unknown> {
    const message: RenderMessage = 'supply';
    this.#port.postMessage(message);
    while (this.#supply === undefined) {
      if (this.isClosed) throw new Error('the body is no longer needed');
      await this.#nextMessage();
    }
    return this.#supply;
  }

  useCredit(): void {
    this.#credit--;
  }

  /** Gives other bodies and messages a turn, and waits until there is credit or the port is closed. */
  async waitForCredit(): Promise<void> {
    await nextTurn();
    while (this.#credit === 0 && !this.isClosed) await this.#nextMessage();
  }

  #nextMessage(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}

/** Returns the piece's memory if it is its own: small Buffers share a pool, which must not be transferred. */
function transferable({ buffer, byteOffset }: Uint8Array): ArrayBuffer[] {
  const isOwn = byteOffset === 0 && buffer.byteLength !== Buffer.poolSize;
  return isOwn && buffer instanceof ArrayBuffer ? [buffer] : [];
}
