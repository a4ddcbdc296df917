// The inside of a render thread: makes a body and posts its pieces, never more than the other end has asked for.

import type { MessagePort } from 'node:worker_threads';
import { messageOf } from '../../common/errors/errors.js';
import { nextTurn } from '../../common/time/next-turn.js';
import { type RenderMessage, type RenderReply, WINDOW } from './render-stream.js';
import { RENDERERS, type RenderKind, type RenderRequests, type RenderSupplies } from './renderers.js';

/** One body. Closing the port's other end ends it early. */
export interface RenderTask<K extends RenderKind = RenderKind> {
  readonly kind: K;
  readonly request: RenderRequests[K];
  readonly port: MessagePort;
}

/** Resolves when the body is made, has failed, or is no longer wanted. */
export default async function render<K extends RenderKind>({ kind, request, port }: RenderTask<K>): Promise<void> {
  const client = new Client(port);
  const post = (message: RenderMessage, transfer: ArrayBuffer[] = []) => port.postMessage(message, transfer);
  try {
    const ask = () => client.ask() as Promise<RenderSupplies[K]>;
    for await (const piece of RENDERERS[kind](request, ask)) {
      if (piece.length > 0) {
        post(piece, transferable(piece));
        client.spend();
      }
      await client.wantsMore();
      if (client.isClosed) return;
    }
    post({ error: undefined });
  } catch (error) {
    post({ error: messageOf(error) });
  }
}

/** The other end: how many pieces it still takes, and what else it has. */
class Client {
  isClosed = false;
  readonly #port: MessagePort;
  #left = WINDOW;
  #supply: unknown;
  #wake: (() => void) | undefined;

  constructor(port: MessagePort) {
    this.#port = port;
    port.on('message', (reply: RenderReply) => {
      if (typeof reply === 'number') this.#left += reply;
      else this.#supply = reply.supply;
      this.#wake?.();
    });
    port.on('close', () => {
      this.isClosed = true;
      this.#wake?.();
    });
  }

  /** What the primary keeps for this kind of bodies. Rejects when nobody wants the body any more. */
  async ask(): Promise<unknown> {
    const message: RenderMessage = 'supply';
    this.#port.postMessage(message);
    while (this.#supply === undefined) {
      if (this.isClosed) throw new Error('the body is no longer wanted');
      await this.#woken();
    }
    return this.#supply;
  }

  spend(): void {
    this.#left--;
  }

  /** Gives other bodies and messages a turn, and waits until there is credit or nobody wants it. */
  async wantsMore(): Promise<void> {
    await nextTurn();
    while (this.#left === 0 && !this.isClosed) await this.#woken();
  }

  #woken(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}

/** Its memory, when it is the piece's own: small Buffers share some, which has to stay. */
function transferable({ buffer, byteOffset }: Uint8Array): ArrayBuffer[] {
  const isOwn = byteOffset === 0 && buffer.byteLength !== Buffer.poolSize;
  return isOwn && buffer instanceof ArrayBuffer ? [buffer] : [];
}
