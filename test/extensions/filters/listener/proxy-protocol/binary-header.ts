// Writes headers of version 2 of the PROXY protocol.

import { parseIp } from '../../../../../src/io/addresses/address.js';

/** `command` includes the version, `family` the transport. */
export function binaryHeader(command: number, family: number, rest: Uint8Array): Buffer {
  const fixed = Buffer.from('\r\n\r\n\0\r\nQUIT\n\0\0\0\0', 'latin1');
  fixed[12] = command;
  fixed[13] = family;
  fixed.writeUInt16BE(rest.length, 14);
  return Buffer.concat([fixed, rest]);
}

/** Encodes the IPv4 or IPv6 addresses of a connection as in a header. */
export function addressesOf(source: string, destination: string, fromPort: number, toPort: number): Buffer {
  const ports = Buffer.alloc(4);
  ports.writeUInt16BE(fromPort, 0);
  ports.writeUInt16BE(toPort, 2);
  return Buffer.concat([parseIp(source)!, parseIp(destination)!, ports]);
}
