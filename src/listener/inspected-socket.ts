// An accepted socket while listener filters inspect its first bytes. The bytes stay in the kernel: the connection then receives
// all of them except those that a filter has consumed.

import type { PassedValues } from '../access-log/stream/passed-values.js';
import { type Address, addressText, decodeSockaddr } from '../io/addresses/address.js';
import { Timer } from '../io/time/timing-wheel.js';
import type { DetectedProtocols } from '../io/tls/detected-protocols.js';
import type { ConnectionHandler } from '../io/transport/connection-handler.js';
import type { Transport } from '../io/transport/transport.js';
import { type InspectedConnection, type ListenerFilter, Verdict } from './listener-filter.js';
import type { ConnectionProperties } from './network-filter.js';
import { passedDestination, passedSource } from './passed-ends.js';

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

/** A connection to an internal listener, which the kernel knows nothing about. */
export interface InternalOrigin {
  /** The address that it was opened to. */
  readonly local: Address;
  /** What it brings with it. */
  readonly passed: PassedValues | undefined;
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
  #isLocalRestored = false;
  #isPassedOn = false;
  /** What it is when it is a connection to an internal listener. */
  readonly origin: InternalOrigin | undefined;
  #next = 0;
  #taken = 0;

  constructor(owner: InspectionOwner, transport: Transport, id: number, peer: Address, origin?: InternalOrigin) {
    this.id = id;
    this.startMonotonicMs = transport.clock.monotonicMs;
    this.timer = new Timer<InspectedSocket>(this, onTimer);
    this.direct = this.remote = peer;
    this.origin = origin;
    this.#local = origin?.local;
    this.#owner = owner;
    this.#transport = transport;
  }

  /** Runs the first filters that need no bytes. Returns whether these were all; otherwise the others get bytes as they arrive. */
  begin(): boolean | InspectionFailure {
    const { filters, maxBytes } = this.#owner;
    for (; filters[this.#next]?.maxBytes === 0; this.#next++) {
      if (filters[this.#next]!.inspect(NO_BYTES, this) < 0) return 'refused';
    }
    if (this.#next === filters.length) return true;
    this.#transport.peek(this.id, maxBytes);
    return false;
  }

  /** Takes over what the filters of another listener, which passes the connection on, have found. */
  inherit({ detected, isLocalRestored, local, remote }: InspectedSocket): void {
    this.#isPassedOn = true;
    this.remote = remote;
    this.#local = local;
    this.#isLocalRestored = isLocalRestored;
    this.detected = detected;
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
    this.#isLocalRestored = true;
  }

  /** A filter has set the local address. */
  get isLocalRestored(): boolean {
    return this.#isLocalRestored;
  }

  /** Another listener has passed it on. */
  get isPassedOn(): boolean {
    return this.#isPassedOn;
  }

  originalDestination(): Address | undefined {
    if (this.origin !== undefined) return passedDestination(this.origin.passed);
    const raw = this.#transport.originalDestination(this.id);
    return raw.length === 0 ? undefined : decodeSockaddr(raw, 0, raw.length);
  }

  originalSource(): Address | undefined {
    return passedSource(this.origin?.passed);
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
      const filter = filters[this.#next]!;
      if (this.#taken === length && filter.maxBytes > 0) return;
      const found = filter.inspect(bytes.subarray(offset + this.#taken, offset + length), this);
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

const NO_BYTES = new Uint8Array(0);

function onTimer(socket: InspectedSocket): void {
  socket.onTimer();
}
