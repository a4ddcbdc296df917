// The client of a datagram, as logs and matchers see it.

import { addressText, type DatagramPath, type DownstreamProperties, type UdpSocket } from '../../../sdk.js';

export interface DatagramClient {
  readonly path: DatagramPath;
  readonly socket: UdpSocket;
}

/** Returns the addresses of a client. */
export function describeClient({ path, socket }: DatagramClient): DownstreamProperties {
  const remoteText = addressText(path.peer);
  const localText = addressText(socket.localAddress(path));
  return {
    remoteText,
    directRemoteText: remoteText,
    localText,
    directLocalText: localText,
    security: undefined,
    transportFailure: '',
    detected: undefined,
  };
}
