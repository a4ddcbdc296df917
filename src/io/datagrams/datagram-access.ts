// Access to the UDP sockets of a thread, which are created for the first user: most configurations have none.

import type { NativeShim } from '../shim.js';
import type { Transport } from '../transport/transport.js';
import { DatagramSockets } from './datagram-sockets.js';

export class DatagramAccess {
  readonly #create: () => DatagramSockets;
  #sockets: DatagramSockets | undefined;

  /** `reserve`: see TransportOptions. */
  constructor(shim: NativeShim, transport: Transport, reserve: number) {
    this.#create = () => new DatagramSockets(shim, transport, reserve);
  }

  open(): DatagramSockets {
    this.#sockets ??= this.#create();
    return this.#sockets;
  }

  /** Closes all sockets. */
  close(): void {
    this.#sockets?.close();
    this.#sockets = undefined;
  }
}
