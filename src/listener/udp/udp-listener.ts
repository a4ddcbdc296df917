// A version of a UDP listener on one worker: passes datagrams to its filters.

import { type Address, decodeSockaddr } from '../../io/addresses/address.js';
import type { DatagramPath } from '../../io/datagrams/datagram-path.js';
import type {
  Datagram,
  DatagramReceiver,
  DatagramSender,
  DatagramSockets,
} from '../../io/datagrams/datagram-sockets.js';
import { forEachGuarded } from '../../log/internal-errors.js';
import type { OverloadChange, ThreadOverload } from '../../runtime/overload/thread-overload.js';
import { UdpListenerStats } from '../../stats/layouts/udp.js';
import type { Scope } from '../../stats/thread-stats.js';
import { OpenConnections } from '../open-connections.js';
import type { WorkerListener } from '../worker-listener.js';
import type { UdpListenerFilter, UdpSocket } from './udp-filter.js';

export interface UdpListenerOptions {
  readonly id: number;
  readonly name: string;
  readonly sockets: DatagramSockets;
  /** With UdpListenerStats. */
  readonly stats: Scope;
  /** Longer datagrams are dropped. */
  readonly maxBytes: number;
  readonly filters: readonly UdpListenerFilter[];
  /** Undefined: no overload manager applies to it. */
  readonly overload?: ThreadOverload | undefined;
}

export class UdpListener implements WorkerListener {
  readonly id: number;
  readonly name: string;
  readonly #options: UdpListenerOptions;
  readonly #open: ListeningSocket[] = [];
  #isStopped = false;
  #isReceiving = false;

  constructor(options: UdpListenerOptions) {
    this.id = options.id;
    this.name = options.name;
    this.#options = options;
  }

  takeSockets(fds: readonly number[]): void {
    const opened: ListeningSocket[] = [];
    try {
      for (const fd of fds) opened.push(new ListeningSocket(this.#options, fd));
    } catch (error) {
      for (const socket of opened) socket.close();
      throw error;
    }
    this.#open.push(...opened);
  }

  accept(): void {
    if (this.#isStopped) return;
    this.#isReceiving = true;
    if (this.#options.overload?.isAcceptingStopped) return;
    for (const socket of this.#open) socket.setReceiving(true);
  }

  suspend(): void {
    this.#isReceiving = false;
    for (const socket of this.#open) socket.setReceiving(false);
  }

  overloadChanged({ togglesAccepting }: OverloadChange): void {
    const { overload } = this.#options;
    if (overload === undefined || !togglesAccepting || !this.#isReceiving) return;
    for (const socket of this.#open) socket.setReceiving(!overload.isAcceptingStopped);
  }

  get suspendedSockets(): number {
    // This number is subtracted from that of the transport's listeners, which do not include UDP sockets.
    return 0;
  }

  /** Stops receiving. The sockets stay open for answers to clients that have sessions. */
  stop(): void {
    this.suspend();
    this.#isStopped = true;
  }

  countOpen(counts: Map<number, OpenConnections>): void {
    const sum = new OpenConnections();
    for (const filter of this.#options.filters) sum.connections += filter.openSessions;
    counts.set(this.id, sum);
  }

  remove(): void {
    this.stop();
    const what = 'internal error: a filter of a UDP listener was not closed';
    forEachGuarded(this.#options.filters, what, (filter) => filter.close());
    forEachGuarded(this.#open.splice(0), 'internal error: a UDP socket was not closed', (socket) => socket.close());
  }

  abandon(): void {
    this.remove();
  }

  // UDP listeners have no filter chains, connections or connection limits.
  chain(): undefined {}
  setChains(): void {}
  removeChain(): void {}
  beginDrain(): void {}
  changeDrain(): void {}
  drainEnded(): void {}
  runtimeChanged(): void {}
  lost(): void {}
  handOver(): void {}
  prepareTakeOver(): string {
    return 'UDP sessions are not handed over';
  }
}

class ListeningSocket implements DatagramReceiver, UdpSocket {
  readonly #sockets: DatagramSockets;
  readonly #stats: Scope;
  readonly #filters: readonly UdpListenerFilter[];
  readonly #id: number;
  readonly #bound: Address;
  #isOpen = true;

  constructor({ filters, maxBytes, sockets, stats }: UdpListenerOptions, fd: number) {
    this.#sockets = sockets;
    this.#stats = stats;
    this.#filters = filters;
    this.#id = sockets.listen(fd, maxBytes, this);
    const raw = sockets.localAddress(this.#id);
    this.#bound = decodeSockaddr(raw, 0, raw.length);
  }

  setReceiving(receives: boolean): void {
    this.#sockets.setReceiving(this.#id, receives);
  }

  onDatagram(datagram: Datagram): void {
    for (const filter of this.#filters) if (!filter.onDatagram(datagram, this)) return;
  }

  onDropped(count: number): void {
    this.#stats.add(UdpListenerStats.at.downstream_rx_datagram_dropped, count);
  }

  onReceiveError(): void {
    for (const filter of this.#filters) filter.onReceiveError?.();
  }

  send(offset: number, length: number, path: DatagramPath, sender: DatagramSender): void {
    if (this.#isOpen) this.#sockets.send(this.#id, offset, length, sender, path);
  }

  localAddress(path: DatagramPath): Address {
    return path.local(this.#bound.port) ?? this.#bound;
  }

  close(): void {
    this.#isOpen = false;
    this.#sockets.remove(this.#id);
  }
}
