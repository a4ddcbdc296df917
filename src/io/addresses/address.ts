// Socket addresses, as text and as the raw Linux sockaddr bytes that the shim uses.

import { isIPv4 } from 'node:net';
import { endianness, networkInterfaces } from 'node:os';
import { BatonError } from '../../common/errors/errors.js';

export const enum AddressKind {
  /** No address: an unnamed Unix socket, or a family that Baton does not know. */
  None = 0,
  Ip4 = 1,
  Ip6 = 2,
  Unix = 3,
  /** A listener of this process (`envoy_internal_address`), which has no socket. */
  Internal = 4,
}

export interface Address {
  readonly kind: AddressKind;
  /** Canonical text without port (RFC 5952), with `%scope` for a scoped IPv6 address; '' if it is not an IP address. */
  readonly ip: string;
  readonly port: number;
  /** Path of a Unix socket; '@name' for an abstract one; `envoy://listener/endpoint` of an internal listener; '' if it is an IP address. */
  readonly path: string;
}

export const NO_ADDRESS: Address = { kind: AddressKind.None, ip: '', port: 0, path: '' };

/** Thrown for text that is not an address, and for an address that does not fit in a sockaddr. */
export class AddressError extends BatonError {
  constructor(message: string) {
    super('CONFIG_INVALID', message);
  }
}

/** Returns the raw sockaddr of an IP address. Throws AddressError for text that is not an IP address and for invalid ports. */
export function encodeIp(ip: string, port: number): Uint8Array {
  if (!Number.isInteger(port) || port < 0 || port > 65535) throw new AddressError(`port ${port} is not in 0…65535`);
  const { bytes, scope } = splitScope(ip);
  if (bytes === undefined) throw new AddressError(`'${ip}' is not an IP address`);
  const raw = new Uint8Array(bytes.length === 4 ? IP4_SOCKADDR_BYTES : IP6_SOCKADDR_BYTES);
  const view = new DataView(raw.buffer);
  view.setUint16(0, bytes.length === 4 ? AF_INET : AF_INET6, LITTLE_ENDIAN);
  view.setUint16(2, port);
  raw.set(bytes, bytes.length === 4 ? 4 : 8);
  if (bytes.length === 16) view.setUint32(24, scope, LITTLE_ENDIAN);
  return raw;
}

/**
 * Returns the raw sockaddr of a Unix socket; a leading '@' names an abstract one. Throws AddressError if it does not fit in the 108 bytes
 * of sun_path, because the kernel would truncate it silently.
 */
export function encodePath(path: string): Uint8Array {
  const text = Buffer.from(path);
  const isAbstract = text[0] === AT_SIGN;
  if (text.length === 0) throw new AddressError('the path of a Unix socket is empty');
  if (text.length > (isAbstract ? SUN_PATH_BYTES : SUN_PATH_BYTES - 1))
    throw new AddressError(`Unix socket path '${path}' is longer than ${SUN_PATH_BYTES - 1} bytes`);
  if (text.includes(0)) throw new AddressError(`Unix socket path '${path}' holds a NUL byte`);
  const raw = new Uint8Array(2 + text.length + (isAbstract ? 0 : 1));
  new DataView(raw.buffer).setUint16(0, AF_UNIX, LITTLE_ENDIAN);
  raw.set(text, 2);
  if (isAbstract) raw[2] = 0;
  return raw;
}

/** Returns the address of an internal listener, or of one of its endpoints. */
export function internalAddress(listener: string, endpoint = ''): Address {
  return { kind: AddressKind.Internal, ip: '', port: 0, path: `${INTERNAL_SCHEME}${listener}/${endpoint}` };
}

/** The opener's address of every connection to an internal listener, as text and as address. */
export const INTERNAL_CLIENT = 'envoy://internal_client_address/';
export const INTERNAL_PEER: Address = { kind: AddressKind.Internal, ip: '', port: 0, path: INTERNAL_CLIENT };

/** Returns whether raw sockaddr bytes are those of an internal address, which the kernel does not know. */
export function isInternal(raw: Uint8Array): boolean {
  return raw[0] === AF_INTERNAL && raw[1] === AF_INTERNAL;
}

/** Returns whether a text of addressText() is an internal address. */
export function isInternalText(text: string): boolean {
  return text.startsWith(INTERNAL_SCHEME);
}

/** Returns the endpoint ID in a text of addressText(); '' if it is not an internal address, or has none. */
export function endpointIdOf(text: string): string {
  return isInternalText(text) ? text.slice(text.lastIndexOf('/') + 1) : '';
}

/** Returns the name of the internal listener in such a text. */
export function internalNameOf(text: string): string {
  return text.slice(INTERNAL_SCHEME.length, text.lastIndexOf('/'));
}

/** Returns the raw sockaddr of a parsed address. */
export function encodeAddress(address: Address): Uint8Array {
  if (address.kind === AddressKind.Internal) return Buffer.concat([INTERNAL_FAMILY, Buffer.from(address.path)]);
  return address.kind === AddressKind.Unix ? encodePath(address.path) : encodeIp(address.ip, address.port);
}

/**
 * Returns the address in the sockaddr bytes[offset, offset + length). An IPv4-mapped IPv6 address, which dual-stack sockets have for IPv4
 * peers, becomes the IPv4 address, so that ranges and logs handle one form only.
 */
export function decodeSockaddr(bytes: Uint8Array, offset: number, length: number): Address {
  if (length < 2) return NO_ADDRESS;
  const family = LITTLE_ENDIAN
    ? bytes[offset]! | (bytes[offset + 1]! << 8)
    : (bytes[offset]! << 8) | bytes[offset + 1]!;
  if (family === AF_INET && length >= 8)
    return { kind: AddressKind.Ip4, ip: formatIp4(bytes, offset + 4), port: portAt(bytes, offset), path: '' };
  if (family === AF_INET6 && length >= 24) return decodeIp6(bytes, offset, length);
  if (family === AF_UNIX && length > 2)
    return { kind: AddressKind.Unix, ip: '', port: 0, path: pathOf(bytes, offset + 2, offset + length) };
  if (bytes[offset] === AF_INTERNAL && bytes[offset + 1] === AF_INTERNAL) {
    const path = Buffer.from(bytes.subarray(offset + 2, offset + length)).toString();
    return { kind: AddressKind.Internal, ip: '', port: 0, path };
  }
  return NO_ADDRESS;
}

/** Returns the address in a whole sockaddr. See decodeSockaddr(). */
export function addressOfSockaddr(raw: Uint8Array): Address {
  return decodeSockaddr(raw, 0, raw.length);
}

/** Returns the 4 or 16 bytes of the IP address in a whole sockaddr, without a scope; undefined for none. See decodeSockaddr(). */
export function ipBytesOf(raw: Uint8Array): Uint8Array | undefined {
  const family = LITTLE_ENDIAN ? raw[0]! | (raw[1]! << 8) : (raw[0]! << 8) | raw[1]!;
  if (family === AF_INET && raw.length >= 8) return raw.slice(4, 8);
  if (family !== AF_INET6 || raw.length < 24) return undefined;
  return isMapped(raw, 8) ? raw.slice(20, 24) : raw.slice(8, 24);
}

/** Returns readable text, as in configurations: `127.0.0.1:80`, `[::1]:80`, `/run/x.sock`, `@name`; '' for no address. */
export function addressText(address: Address): string {
  switch (address.kind) {
    case AddressKind.Ip4:
      return `${address.ip}:${address.port}`;
    case AddressKind.Ip6:
      return `[${address.ip}]:${address.port}`;
    default:
      return address.path;
  }
}

/** Returns the IP address in a text of addressText(); '' for a Unix socket and an internal address. */
export function ipOfAddress(text: string): string {
  if (text[0] === '/' || text[0] === '@' || isInternalText(text)) return '';
  const colon = text.lastIndexOf(':');
  return text[0] === '[' ? text.slice(1, colon - 1) : text.slice(0, Math.max(colon, 0));
}

/** Returns the port in a text of addressText(); 0 for a Unix socket and an internal address. */
export function portOfAddress(text: string): number {
  return ipOfAddress(text) === '' ? 0 : Number(text.slice(text.lastIndexOf(':') + 1));
}

/**
 * Parses a text of addressText() or `unix://path`, but no relative paths. Returns undefined for other text; names are not resolved. IPv6
 * addresses become canonical.
 */
export function parseAddress(text: string): Address | undefined {
  if (text.startsWith('unix://')) text = text.slice('unix://'.length);
  if (text[0] === '/' || text[0] === '@') return { kind: AddressKind.Unix, ip: '', port: 0, path: text };
  const colon = text.lastIndexOf(':');
  const isBracketed = text[0] === '[' && text[colon - 1] === ']';
  const port = parsePort(text.slice(colon + 1));
  if (colon < 0 || port < 0) return undefined;
  const address = ipAddress(isBracketed ? text.slice(1, colon - 1) : text.slice(0, colon), port);
  return address !== undefined && (address.kind === AddressKind.Ip6) === isBracketed ? address : undefined;
}

/** Returns the address in a text of addressText(). Unlike parseAddress(), it treats any other text as a relative path. */
export function addressOfText(text: string): Address {
  if (isInternalText(text)) return { kind: AddressKind.Internal, ip: '', port: 0, path: text };
  return parseAddress(text) ?? { kind: AddressKind.Unix, ip: '', port: 0, path: text };
}

/** Returns an IP address with canonical text and a port; undefined if `ip` is not an IP address. */
export function ipAddress(ip: string, port: number): Address | undefined {
  const { bytes, scope } = splitScope(ip);
  if (bytes === undefined) return undefined;
  const text = formatIp(bytes);
  return bytes.length === 4
    ? { kind: AddressKind.Ip4, ip: text, port, path: '' }
    : { kind: AddressKind.Ip6, ip: scope === 0 ? text : `${text}%${scope}`, port, path: '' };
}

/** Returns the 4 or 16 bytes of an IP address in text (RFC 4291 §2.2; no zone, no brackets), or undefined. */
export function parseIp(text: string): Uint8Array | undefined {
  return text.includes(':') ? parseIp6(text) : parseIp4(text);
}

/** Returns the canonical text of 4 or 16 address bytes. */
export function formatIp(bytes: Uint8Array): string {
  return bytes.length === 4 ? formatIp4(bytes, 0) : formatIp6(bytes, 0);
}

/** Returns the IP address in 4 or 16 bytes; an IPv4-mapped one becomes IPv4, as in decodeSockaddr(). */
export function addressOfBytes(bytes: Uint8Array, port: number): Address {
  if (bytes.length === 4) return { kind: AddressKind.Ip4, ip: formatIp4(bytes, 0), port, path: '' };
  if (isMapped(bytes, 0)) return { kind: AddressKind.Ip4, ip: formatIp4(bytes, 12), port, path: '' };
  return { kind: AddressKind.Ip6, ip: formatIp6(bytes, 0), port, path: '' };
}

const LITTLE_ENDIAN = endianness() === 'LE';
const AF_UNIX = 1;
const AF_INET = 2;
const AF_INET6 = 10;
/** Each of the two bytes of the family of internal addresses, which the kernel has no family for. */
const AF_INTERNAL = 0xfd;
const INTERNAL_FAMILY = Buffer.of(AF_INTERNAL, AF_INTERNAL);
const INTERNAL_SCHEME = 'envoy://';
const IP4_SOCKADDR_BYTES = 16;
const IP6_SOCKADDR_BYTES = 28;
const SUN_PATH_BYTES = 108;
const AT_SIGN = 64;

/** Decimal text of each byte, without and with a dot: joining four of these is the fastest way to format an IPv4 address. */
const DECIMAL: readonly string[] = Array.from({ length: 256 }, (_, byte) => String(byte));
const DOTTED: readonly string[] = DECIMAL.map((decimal) => `${decimal}.`);

function portAt(bytes: Uint8Array, offset: number): number {
  return (bytes[offset + 2]! << 8) | bytes[offset + 3]!;
}

function formatIp4(bytes: Uint8Array, at: number): string {
  return DOTTED[bytes[at]!]! + DOTTED[bytes[at + 1]!]! + DOTTED[bytes[at + 2]!]! + DECIMAL[bytes[at + 3]!]!;
}

function decodeIp6(bytes: Uint8Array, offset: number, length: number): Address {
  const port = portAt(bytes, offset);
  if (isMapped(bytes, offset + 8)) return { kind: AddressKind.Ip4, ip: formatIp4(bytes, offset + 20), port, path: '' };
  const scope =
    length >= IP6_SOCKADDR_BYTES
      ? new DataView(bytes.buffer, bytes.byteOffset + offset + 24, 4).getUint32(0, LITTLE_ENDIAN)
      : 0;
  const text = formatIp6(bytes, offset + 8);
  return { kind: AddressKind.Ip6, ip: scope === 0 ? text : `${text}%${scope}`, port, path: '' };
}

/** ::ffff:0:0/96 */
function isMapped(bytes: Uint8Array, at: number): boolean {
  for (let i = 0; i < 10; i++) if (bytes[at + i] !== 0) return false;
  return bytes[at + 10] === 0xff && bytes[at + 11] === 0xff;
}

function pathOf(bytes: Uint8Array, start: number, end: number): string {
  const isAbstract = bytes[start] === 0;
  // Only a filesystem path ends at a NUL; an abstract name may contain NULs.
  const nul = isAbstract ? -1 : bytes.subarray(start, end).indexOf(0);
  const text = Buffer.from(bytes.subarray(isAbstract ? start + 1 : start, nul < 0 ? end : start + nul)).toString();
  return isAbstract ? `@${text}` : text;
}

/** RFC 5952: lower case, no leading zeros, the first longest run of two or more zero groups as '::'. */
function formatIp6(bytes: Uint8Array, at: number): string {
  if (isMapped(bytes, at)) return `::ffff:${formatIp4(bytes, at + 12)}`;
  const groups: number[] = [];
  for (let i = 0; i < 16; i += 2) groups.push((bytes[at + i]! << 8) | bytes[at + i + 1]!);
  let bestStart = -1;
  let bestLength = 1;
  for (let start = 0; start < 8; start++) {
    let end = start;
    while (end < 8 && groups[end] === 0) end++;
    if (end - start > bestLength) {
      bestStart = start;
      bestLength = end - start;
    }
    if (end > start) start = end;
  }
  const text = (part: number[]) => part.map((group) => group.toString(16)).join(':');
  if (bestStart < 0) return text(groups);
  return `${text(groups.slice(0, bestStart))}::${text(groups.slice(bestStart + bestLength))}`;
}

function parseIp4(text: string): Uint8Array | undefined {
  return isIPv4(text) ? Uint8Array.from(text.split('.'), Number) : undefined;
}

function parseIp6(text: string): Uint8Array | undefined {
  const halves = text.split('::');
  if (halves.length > 2) return undefined;
  const head = parseGroups(halves[0]!, halves.length === 1);
  const tail = halves.length === 2 ? parseGroups(halves[1]!, true) : [];
  if (head === undefined || tail === undefined) return undefined;
  const count = head.length + tail.length;
  if (halves.length === 2 ? count > 14 : count !== 16) return undefined;
  const bytes = new Uint8Array(16);
  bytes.set(head, 0);
  bytes.set(tail, 16 - tail.length);
  return bytes;
}

/** Returns the bytes of colon-separated groups. The last group may be an IPv4 address if it ends the whole address. */
function parseGroups(text: string, endsAddress: boolean): number[] | undefined {
  if (text === '') return [];
  const bytes: number[] = [];
  const groups = text.split(':');
  for (let i = 0; i < groups.length; i++) {
    const group = groups[i]!;
    if (/^[0-9a-fA-F]{1,4}$/.test(group)) {
      const value = Number.parseInt(group, 16);
      bytes.push(value >> 8, value & 255);
      continue;
    }
    const ip4 = endsAddress && i === groups.length - 1 ? parseIp4(group) : undefined;
    if (ip4 === undefined) return undefined;
    bytes.push(...ip4);
  }
  return bytes;
}

/** `fe80::1%2` and `fe80::1%eth0`: the scope is an interface's index, or its name if this machine has it. */
function splitScope(ip: string): { bytes: Uint8Array | undefined; scope: number } {
  const percent = ip.indexOf('%');
  if (percent < 0) return { bytes: parseIp(ip), scope: 0 };
  const bytes = parseIp(ip.slice(0, percent));
  const scope = scopeNumber(ip.slice(percent + 1));
  return bytes?.length === 16 && scope > 0 ? { bytes, scope } : { bytes: undefined, scope: 0 };
}

function scopeNumber(zone: string): number {
  if (/^[0-9]{1,9}$/.test(zone)) return Number(zone);
  for (const entry of networkInterfaces()[zone] ?? [])
    if (entry.family === 'IPv6' && entry.scopeid) return entry.scopeid;
  return 0;
}

function parsePort(text: string): number {
  const port = /^[0-9]{1,5}$/.test(text) ? Number(text) : -1;
  return port <= 65535 ? port : -1;
}
