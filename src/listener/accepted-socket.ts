// The addresses of a socket that was just accepted, determined on demand.

import { type Address, decodeSockaddr } from '../io/addresses/address.js';
import type { Transport } from '../io/transport/transport.js';
import type { ConnectionProperties } from './network-filter.js';

/** Each listener has one and reuses it. Valid while the socket is being accepted. */
export class AcceptedSocket implements ConnectionProperties {
  /** There are no listener filters. */
  readonly detected = undefined;
  readonly #transport: Transport;
  #id = 0;
  #offset = 0;
  #length = 0;
  #remote: Address | undefined;
  #local: Address | undefined;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Starts with another socket, whose peer's sockaddr is memory[offset, offset + length). */
  begin(id: number, offset: number, length: number): this {
    this.#id = id;
    this.#offset = offset;
    this.#length = length;
    this.#remote = undefined;
    this.#local = undefined;
    return this;
  }

  get direct(): Address {
    return this.remote;
  }

  get remote(): Address {
    this.#remote ??= decodeSockaddr(this.#transport.memory.bytes, this.#offset, this.#length);
    return this.#remote;
  }

  /** Requested from the kernel. */
  get local(): Address {
    if (this.#local === undefined) {
      const raw = this.#transport.localAddress(this.#id);
      this.#local = decodeSockaddr(raw, 0, raw.length);
    }
    return this.#local;
  }
}
