// Parses the header of the PROXY protocol, by which a proxy reports the addresses of a connection: versions 1 (a line of text)
// and 2 (binary), https://www.haproxy.org/download/2.9/doc/proxy-protocol.txt

import { type Address, addressOfBytes, parseIp } from '../../../sdk.js';

export type Version = 1 | 2;

/** A complete header. */
export interface ProxyHeader {
  /** In bytes. */
  readonly length: number;
  /** Undefined: the connection is the proxy's own, or its client is unknown; the addresses of the socket apply. */
  readonly addresses: { readonly source: Address; readonly destination: Address } | undefined;
}

/** Maximum of both versions: version 2 with a length field of 65535. */
export const MAX_HEADER_BYTES = 16 + 65535;

const SIGNATURES: readonly (readonly [Version, Uint8Array])[] = [
  [1, Buffer.from('PROXY ')],
  [2, Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')],
];

/** Returns which of `versions` has a header that begins like `bytes`; undefined: none. */
export function versionOf(bytes: Uint8Array, versions: readonly Version[]): Version | 'incomplete' | undefined {
  for (const [version, signature] of SIGNATURES) {
    if (!versions.includes(version)) continue;
    const seen = Math.min(bytes.length, signature.length);
    if (Buffer.compare(bytes.subarray(0, seen), signature.subarray(0, seen)) !== 0) continue;
    return seen < signature.length ? 'incomplete' : version;
  }
  return undefined;
}

/** Reads a header that begins with the signature of its version. */
export function readHeader(version: Version, bytes: Uint8Array): ProxyHeader | 'incomplete' | 'invalid' {
  return version === 1 ? readLine(bytes) : readBinary(bytes);
}

/** Maximum bytes of a version 1 header, line end included. */
const MAX_LINE_BYTES = 107;
const LINE_FEED = 10;

function readLine(bytes: Uint8Array): ProxyHeader | 'incomplete' | 'invalid' {
  const end = bytes.subarray(0, MAX_LINE_BYTES).indexOf(LINE_FEED);
  if (end < 0) return bytes.length < MAX_LINE_BYTES ? 'incomplete' : 'invalid';
  const text = Buffer.from(bytes.subarray(0, end)).toString('latin1');
  if (!text.endsWith('\r')) return 'invalid';
  const [, family, ...parts] = text.slice(0, -1).split(' ');
  const length = end + 1;
  if (family === 'UNKNOWN') return { length, addresses: undefined };
  const ipBytes = family === 'TCP4' ? 4 : family === 'TCP6' ? 16 : 0;
  if (ipBytes === 0 || parts.length !== 4) return 'invalid';
  const [from, to, fromPort, toPort] = parts as [string, string, string, string];
  return between(length, [parseIp(from), portOf(fromPort)], [parseIp(to), portOf(toPort)], ipBytes);
}

function portOf(text: string): number {
  return /^[0-9]{1,5}$/.test(text) ? Number(text) : Number.NaN;
}

const FIXED_BYTES = 16;
const VERSION_2 = 2;
const LOCAL = 0;
const PROXY = 1;
/** Bytes of an address by address family. */
const IP_BYTES: readonly number[] = [0, 4, 16];
/** The client's transport. A proxy that serves QUIC reports datagrams. */
const STREAM = 1;
const DATAGRAMS = 2;

function readBinary(bytes: Uint8Array): ProxyHeader | 'incomplete' | 'invalid' {
  if (bytes.length < FIXED_BYTES) return 'incomplete';
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const [what, way, rest] = [view.getUint8(12), view.getUint8(13), view.getUint16(14)];
  const command = what & 15;
  if (what >> 4 !== VERSION_2 || command > PROXY) return 'invalid';
  const transport = way & 15;
  const ipBytes = transport === STREAM || transport === DATAGRAMS ? (IP_BYTES[way >> 4] ?? 0) : 0;
  if (command === PROXY && (ipBytes === 0 || rest < 2 * ipBytes + 4)) return 'invalid';
  const length = FIXED_BYTES + rest;
  if (bytes.length < length) return 'incomplete';
  if (command === LOCAL) return { length, addresses: undefined };
  const ip = (index: number) => bytes.subarray(FIXED_BYTES + index * ipBytes, FIXED_BYTES + (index + 1) * ipBytes);
  const ports = FIXED_BYTES + 2 * ipBytes;
  if (!areExtensions(view, ports + 4, length)) return 'invalid';
  return between(length, [ip(0), view.getUint16(ports)], [ip(1), view.getUint16(ports + 2)], ipBytes);
}

/** Type and length of a TLV. */
const EXTENSION_HEAD_BYTES = 3;

/** Returns whether [at, end) consists of complete TLVs (section 2.2), whose content is ignored. */
function areExtensions(view: DataView, at: number, end: number): boolean {
  while (at + EXTENSION_HEAD_BYTES <= end) at += EXTENSION_HEAD_BYTES + view.getUint16(at + 1);
  return at === end;
}

type End = readonly [ip: Uint8Array | undefined, port: number];

function between(length: number, from: End, to: End, ipBytes: number): ProxyHeader | 'invalid' {
  const source = endOf(from, ipBytes);
  const destination = endOf(to, ipBytes);
  return source === undefined || destination === undefined ? 'invalid' : { length, addresses: { source, destination } };
}

/** Returns undefined if it cannot be the address of a TCP endpoint. */
function endOf([ip, port]: End, ipBytes: number): Address | undefined {
  if (ip?.length !== ipBytes || !(port <= 65535) || !isUnicast(ip)) return undefined;
  return addressOfBytes(ip, port);
}

function isUnicast(ip: Uint8Array): boolean {
  if (ip.every((byte) => byte === 0)) return false;
  return ip.length === 16 ? ip[0] !== 0xff : ip[0]! >> 4 !== 0xe && !ip.every((byte) => byte === 0xff);
}
