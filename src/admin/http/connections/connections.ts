// The open connections of the admin server, and the requests that each waits for.
//
// node:http counts a connection that has not asked anything yet as busy, so that a browser's spare connection would hold up
// an exit; here it is idle.

import { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { AdminOutgoing } from '../messages/exchange.js';

export class Connections {
  readonly #pending = new Map<Socket, Set<AdminOutgoing>>();
  #isClosing = false;

  /** Follows a connection from now on. */
  add(socket: Socket): void {
    const pending = new Set<AdminOutgoing>();
    this.#pending.set(socket, pending);
    socket.on('close', () => {
      this.#pending.delete(socket);
      for (const response of pending) closeQueued(response);
    });
  }

  /** For how many answers it waits. */
  waiting(socket: Socket): number {
    return this.#pending.get(socket)?.size ?? 0;
  }

  /** The connection waits for an answer. */
  wait(socket: Socket, response: AdminOutgoing): void {
    const pending = this.#pending.get(socket);
    if (pending === undefined) return closeQueued(response);
    pending.add(response);
    response.on('close', () => {
      pending.delete(response);
      if (this.#isClosing && pending.size === 0) socket.destroySoon();
    });
  }

  /** Ends connections as soon as they wait for no answer. */
  closeWhenIdle(): void {
    this.#isClosing = true;
    for (const [socket, pending] of this.#pending) if (pending.size === 0) socket.destroySoon();
  }
}

/**
 * node:http says nothing to an answer behind another one on a pipelined connection when the client leaves: it would wait for
 * ever, with its body, for its turn.
 */
function closeQueued(response: AdminOutgoing): void {
  if (!(response instanceof ServerResponse) || response.socket !== null) return;
  response.destroy();
  response.emit('close');
}
