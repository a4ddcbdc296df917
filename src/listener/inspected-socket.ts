// An accepted socket while listener filters inspect its first bytes. The bytes stay in the kernel: the connection then receives
// all of them except those that a filter has consumed.

import { type Address, addressText, decodeSockaddr } from '../io/addresses/address.js';
import { Timer } from '../io/time/timing-wheel.js';
import type { DetectedProtocols } from '../io/tls/detected-protocols.js';
import type { ConnectionHandler } from '../io/transport/connection-handler.js';
import type { Transport } from '../io/transport/transport.js';
import { type InspectedConnection, type ListenerFilter, Verdict } from './listener-filter.js';
import type { ConnectionProperties } from './network-filter.js';

/** Why a socket is dropped. */
export type InspectionFailure = 'remote_close' | 'refused' | 'error';

export interface InspectionOwner {
  readonly filters: readonly ListenerFilter[];
  /** Sum for all filters. */
  readonly maxBytes: number;
  /** Called when all filters have passed the socket. */
  passed(socket: InspectedSocket): void;
  /** Called when the socket must be dropped. */
  failed(socket: InspectedSocket, why: InspectionFailure): void;
  /** Called when the inspection has timed out. */
  timedOut(socket: InspectedSocket): void;
}

export class InspectedSocket implements ConnectionHandler, ConnectionProperties, InspectedConnection {
  readonly id: number;
  readonly startMonotonicMs: number;
  readonly timer: Timer<InspectedSocket>;
  /** Index among the inspected sockets of its listener. */
  place = -1;
  /** The socket's peer, regardless of what filters detect. */
  readonly direct: Address;
  remote: Address;
  detected: DetectedProtocols | undefined;
  readonly #owner: InspectionOwner;
  readonly #transport: Transport;
  #local: Address | undefined;
  #next = 0;
  #taken = 0;

  /** The peer's sockaddr is memory[offset, offset + length). */
  constructor(owner: InspectionOwner, transport: Transport, id: number, offset: number, length: number) {
    this.id = id;
    this.startMonotonicMs = transport.clock.monotonicMs;
    this.timer = new Timer<InspectedSocket>(this, onTimer);
    this.direct = this.remote = decodeSockaddr(transport.memory.bytes, offset, length);
    this.#owner = owner;
    this.#transport = transport;
    transport.peek(id, owner.maxBytes);
  }

  /** Requested from the kernel unless a filter has set it. */
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

  detect(): DetectedProtocols {
    this.detected ??= { transportProtocol: '', applicationProtocols: [], serverName: '', ja3: '', ja4: '' };
    return this.detected;
  }

  /** '' until it is determined. */
  get localText(): string {
    return this.#local === undefined ? '' : addressText(this.#local);
  }

  /** How many of the received bytes the filters consume. */
  get taken(): number {
    return this.#taken;
  }

  /** Called with all bytes received so far. */
  onData(offset: number, length: number): void {
    const { filters, maxBytes } = this.#owner;
    const { bytes } = this.#transport.memory;
    for (; this.#next < filters.length; this.#next++) {
      if (this.#taken === length) return;
      const found = filters[this.#next]!.inspect(bytes.subarray(offset + this.#taken, offset + length), this);
      if (found === Verdict.NeedsMore && length < maxBytes) return;
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

  // Never called: the socket sends nothing and does not connect.
  onConnected(): void {}
  onBlocked(): void {}
  onDrained(): void {}
}

function onTimer(socket: InspectedSocket): void {
  socket.onTimer();
}
