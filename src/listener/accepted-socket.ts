// The two ends of a socket that was just accepted, as far as somebody asks for them.

import { type Address, decodeSockaddr } from '../io/addresses/address.js';
import type { Transport } from '../io/transport/transport.js';

/** One a listener: valid while the socket is being accepted. */
export class AcceptedSocket {
  readonly #transport: Transport;
  #id = 0;
  #offset = 0;
  #length = 0;
  #remote: Address | undefined;
  #local: Address | undefined;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** It is this socket now; the peer's sockaddr stands in memory. */
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

  /** Asked of the kernel. */
  get local(): Address {
    if (this.#local === undefined) {
      const raw = this.#transport.localAddress(this.#id);
      this.#local = decodeSockaddr(raw, 0, raw.length);
    }
    return this.#local;
  }
}
