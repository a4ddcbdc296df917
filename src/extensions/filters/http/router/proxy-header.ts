// The header of the PROXY protocol for a request that ends here: the addresses of its client's connection.
// https://www.haproxy.org/download/2.9/doc/proxy-protocol.txt

import type { StreamInfo } from '../../../../access-log/stream/stream-info.js';
import type { ProxyProtocolConfig_Version } from '../../../../config/generated/api.js';
import { AddressKind, addressOfText, parseIp } from '../../../../io/addresses/address.js';

const NONE = new Uint8Array(0);
const SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');
const PROXIED = 0x21;
const STREAM_OVER_IPV4 = 0x11;
const STREAM_OVER_IPV6 = 0x21;
/** The connection of a health check or of a client without address. */
const LOCAL = Buffer.concat([SIGNATURE, Buffer.of(0x20, 0, 0, 0)]);

/** Undefined: no header. */
export function proxyHeader(version: ProxyProtocolConfig_Version | undefined, info: StreamInfo): Uint8Array {
  if (version === undefined) return NONE;
  const from = addressOfText(info.downstreamDirectRemoteAddress);
  const to = addressOfText(info.downstreamDirectLocalAddress);
  const isKnown = from.kind === to.kind && from.kind !== AddressKind.Unix;
  if (version === 'V1') {
    if (!isKnown) return Buffer.from('PROXY UNKNOWN\r\n');
    const family = from.ip.includes(':') ? 'TCP6' : 'TCP4';
    return Buffer.from(`PROXY ${family} ${from.ip} ${to.ip} ${from.port} ${to.port}\r\n`);
  }
  const fromBytes = parseIp(from.ip);
  const toBytes = parseIp(to.ip);
  if (!isKnown || fromBytes === undefined || toBytes === undefined) return LOCAL;
  const ports = Buffer.alloc(4);
  ports.writeUInt16BE(from.port, 0);
  ports.writeUInt16BE(to.port, 2);
  const family = fromBytes.length === 4 ? STREAM_OVER_IPV4 : STREAM_OVER_IPV6;
  const addresses = Buffer.concat([fromBytes, toBytes, ports]);
  return Buffer.concat([SIGNATURE, Buffer.of(PROXIED, family, 0, addresses.length), addresses]);
}
