// A socket that was accepted, while listener filters look at its first bytes. These stay in the kernel: whoever serves the
// connection then finds all of them but those that a filter has taken.

import { type Address, addressText, decodeSockaddr } from '../io/addresses/address.js';
import { Timer } from '../io/time/timing-wheel.js';
import type { ConnectionHandler } from '../io/transport/connection-handler.js';
import type { Transport } from '../io/transport/transport.js';
import { type InspectedEnds, type ListenerFilter, Verdict } from './listener-filter.js';
import type { ConnectionEnds } from './network-filter.js';

/** Why a socket is not served. */
export type InspectionFailure = 'remote_close' | 'refused' | 'error';

export interface InspectionOwner {
  readonly filters: readonly ListenerFilter[];
  /** Of all filters. */
  readonly mostBytes: number;
  /** All filters have seen it. */
  passed(socket: InspectedSocket): void;
  /** It is not to be served. */
  failed(socket: InspectedSocket, why: InspectionFailure): void;
  /** Its time is over. */
  timedOut(socket: InspectedSocket): void;
}

export class InspectedSocket implements ConnectionHandler, ConnectionEnds, InspectedEnds {
  readonly id: number;
  readonly startMonotonicMs: number;
  readonly timer: Timer<InspectedSocket>;
  /** Among the sockets of its listener that are looked at. */
  place = -1;
  /** The socket's own peer, whatever filters find out. */
  readonly direct: Address;
  remote: Address;
  readonly #owner: InspectionOwner;
  readonly #transport: Transport;
  #local: Address | undefined;
  #next = 0;
  #taken = 0;

  /** The peer's sockaddr stands in memory. */
  constructor(owner: InspectionOwner, transport: Transport, id: number, offset: number, length: number) {
    this.id = id;
    this.startMonotonicMs = transport.clock.monotonicMs;
    this.timer = new Timer<InspectedSocket>(this, onTimer);
    this.direct = this.remote = decodeSockaddr(transport.memory.bytes, offset, length);
    this.#owner = owner;
    this.#transport = transport;
    transport.peek(id, owner.mostBytes);
  }

  /** Asked of the kernel, unless a filter knows another one. */
  get local(): Address {
    if (this.#local === undefined) {
      const raw = this.#transport.localAddress(this.id);
      this.#local = decodeSockaddr(raw, 0, raw.length);
    }
    return this.#local;
  }

  set local(address: Address) {
    this.#local = address;
  }

  /** '' as long as nobody has asked for it. */
  get localText(): string {
    return this.#local === undefined ? '' : addressText(this.#local);
  }

  /** Of the bytes that have come, so many are the filters'. */
  get taken(): number {
    return this.#taken;
  }

  /** All that has come so far. */
  onData(offset: number, length: number): void {
    const { filters, mostBytes } = this.#owner;
    const { bytes } = this.#transport.memory;
    for (; this.#next < filters.length; this.#next++) {
      if (this.#taken === length) return;
      const found = filters[this.#next]!.inspect(bytes.subarray(offset + this.#taken, offset + length), this);
      if (found === Verdict.NeedsMore && length < mostBytes) return;
      if (found < 0) return this.#owner.failed(this, 'refused');
      this.#taken += found;
    }
    this.#owner.passed(this);
  }

  onEnd(): void {
    this.#owner.failed(this, 'remote_close');
  }

  onReset(): void {
    this.#owner.failed(this, 'error');
  }

  onFault(): void {
    this.#owner.failed(this, 'error');
  }

  onTimer(): void {
    this.#owner.timedOut(this);
  }

  // It sends nothing, and does not connect.
  onConnected(): void {}
  onBlocked(): void {}
  onDrained(): void {}
}

function onTimer(socket: InspectedSocket): void {
  socket.onTimer();
}
