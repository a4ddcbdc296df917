// The open connections of the admin server, and how many requests each waits for.
//
// node:http counts a connection that has not asked anything yet as busy, so that a browser's spare connection would hold up
// an exit; here it is idle.

import type { Server } from 'node:http';
import type { Socket } from 'node:net';

export class Connections {
  readonly #pending = new Map<Socket, number>();
  #isClosing = false;

  /** Follows all connections of `server` from now on. */
  constructor(server: Server) {
    server.on('connection', (socket) => {
      this.#pending.set(socket, 0);
      socket.on('close', () => this.#pending.delete(socket));
    });
    server.on('request', ({ socket }, response) => {
      this.#add(socket, 1);
      response.on('close', () => this.#add(socket, -1));
    });
  }

  /** Ends connections as soon as they wait for no answer. */
  closeWhenIdle(): void {
    this.#isClosing = true;
    for (const [socket, pending] of this.#pending) if (pending === 0) socket.destroySoon();
  }

  #add(socket: Socket, change: 1 | -1): void {
    const pending = this.#pending.get(socket);
    if (pending === undefined) return;
    this.#pending.set(socket, pending + change);
    if (this.#isClosing && pending + change === 0) socket.destroySoon();
  }
}
