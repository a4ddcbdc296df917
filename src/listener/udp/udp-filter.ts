// The filters of a UDP listener, and the sockets that they answer on.

import type { Address } from '../../io/addresses/address.js';
import type { DatagramPath } from '../../io/datagrams/datagram-path.js';
import type { Datagram, DatagramSender } from '../../io/datagrams/datagram-sockets.js';

/** A filter of a UDP listener on one worker. It exists once for each version of the listener. */
export interface UdpListenerFilter {
  /** Called for each datagram of a client. Returns whether the following filters get it too. */
  onDatagram(datagram: Datagram, from: UdpSocket): boolean;
  /** Called when receiving from clients has failed. */
  onReceiveError?(): void;
  /** Number of its clients that may still get datagrams: the listener drains as long as there are any. */
  readonly openSessions: number;
  /** Ends its sessions. Called once, when the listener is removed. */
  close(): void;
}

/** A socket of a UDP listener. */
export interface UdpSocket {
  /** Sends datagram memory[offset, offset + length) to the other end of `path`, from the address that it was sent to. */
  send(offset: number, length: number, path: DatagramPath, sender: DatagramSender): void;
  /** Returns the local end of a path. */
  localAddress(path: DatagramPath): Address;
}
