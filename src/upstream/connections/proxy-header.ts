// The header of the PROXY protocol, by which a host gets the addresses of the client.
// https://www.haproxy.org/download/2.9/doc/proxy-protocol.txt

import type { ProxyProtocolConfig_Version } from '../../config/generated/api.js';
import { type Address, addressOfText, parseIp } from '../../io/addresses/address.js';

const SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');
const PROXIED = 0x21;
const STREAM_OVER_IPV4 = 0x11;
const STREAM_OVER_IPV6 = 0x21;
/** The connection of a health check or of a client without address. */
const LOCAL = Buffer.concat([SIGNATURE, Buffer.of(0x20, 0, 0, 0)]);
const NONE: Uint8Array = new Uint8Array();

/** The two ends of a client's connection, as text with port. */
export interface ClientEnds {
  readonly remoteText: string;
  readonly localText: string;
}

/** Returns the header for a client. `tlvs`: encoded, for version 2. */
export function proxyHeader(
  version: ProxyProtocolConfig_Version,
  client: ClientEnds,
  tlvs: Uint8Array = NONE,
): Uint8Array {
  const from = addressOfText(client.remoteText);
  const to = addressOfText(client.localText);
  return version === 'V1' ? lineHeader(from, to) : binaryHeader(from, to, tlvs);
}

/** Returns the header for a connection without a client. `own`: the ends of that connection. */
export function localProxyHeader(version: ProxyProtocolConfig_Version, own: () => ClientEnds): Uint8Array {
  return version === 'V1' ? proxyHeader('V1', own()) : LOCAL;
}

/** Encodes an extension of version 2. */
export function encodeTlv(type: number, value: Uint8Array): Buffer {
  return Buffer.concat([Buffer.of(type, value.length >> 8, value.length & 0xff), value]);
}

function lineHeader(from: Address, to: Address): Uint8Array {
  if (from.kind !== to.kind || from.ip === '') return Buffer.from('PROXY UNKNOWN\r\n');
  const family = from.ip.includes(':') ? 'TCP6' : 'TCP4';
  return Buffer.from(`PROXY ${family} ${from.ip} ${to.ip} ${from.port} ${to.port}\r\n`);
}

function binaryHeader(from: Address, to: Address, tlvs: Uint8Array): Uint8Array {
  const fromBytes = parseIp(from.ip);
  const toBytes = parseIp(to.ip);
  if (fromBytes === undefined || toBytes === undefined || fromBytes.length !== toBytes.length) return LOCAL;
  const ports = Buffer.alloc(4);
  ports.writeUInt16BE(from.port, 0);
  ports.writeUInt16BE(to.port, 2);
  const rest = Buffer.concat([fromBytes, toBytes, ports, tlvs]);
  const family = fromBytes.length === 4 ? STREAM_OVER_IPV4 : STREAM_OVER_IPV6;
  return Buffer.concat([SIGNATURE, Buffer.of(PROXIED, family, rest.length >> 8, rest.length & 0xff), rest]);
}
