// Validates the configured address of a statsd sink and opens a socket for it.

import type { Address } from '../../../config/generated/api.js';
import { addressText, encodePath, ipAddress, type Report } from '../../sdk.js';
import { Condition } from '../condition.js';
import type { DatagramSocket } from './datagram-writer.js';
import { UdpSocket } from './udp-socket.js';
import { UnixSocket } from './unix-socket.js';

/** Reports mistakes in the `address` of a sink. */
export function checkDatagramAddress(address: Address | undefined, report: Report): void {
  const { socket_address: socket, pipe } = address ?? {};
  if (pipe?.path?.startsWith('@')) {
    report('address.pipe.path', 'abstract Unix sockets are not implemented for datagrams: give a path');
  } else if (pipe !== undefined) {
    try {
      encodePath(pipe.path ?? '');
    } catch (error) {
      report('address.pipe.path', (error as Error).message);
    }
  }
  if (address?.envoy_internal_address !== undefined)
    report('address.envoy_internal_address', 'a sink needs a socket: set socket_address or pipe');
  if (socket === undefined) return;
  if (ipAddress(socket.address ?? '', socket.port_value ?? 0) === undefined) {
    report('address.socket_address.address', `malformed IP address: ${socket.address}`);
  }
  if (!socket.port_value) report('address.socket_address', 'a port_value is needed');
}

/** Creates a socket for a validated address. `sink` names it in the log. */
export function datagramSocket(address: Address, sink: string): DatagramSocket {
  const { socket_address: socket, pipe } = address;
  if (pipe !== undefined) return new UnixSocket(pipe.path!, new Condition(`${sink} ${pipe.path}`));
  const known = ipAddress(socket!.address!, socket!.port_value!)!;
  return new UdpSocket(known.ip, known.port, new Condition(`${sink} ${addressText(known)}`));
}
