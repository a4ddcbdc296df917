// The lines that most requests get at the edge, written at once: client address, scheme, request ID.

import type { Random } from '../../../common/random.js';
import { type HeaderKey, headerKey } from '../../../common/text/header-names.js';
import type { HeaderBlock } from '../header-block.js';
import { PreparedText } from '../header-line.js';
import { REQUEST_ID_BYTES, writeRequestId } from './request-id.js';

/** Caches the lines of one client, because requests of a connection often follow each other. */
export class EdgeLines {
  readonly #localIp: string;
  readonly #ip4Prefix: string;
  readonly #lines = new PreparedText(512);
  #peer = '';
  #scheme = '';
  #addressLength = 0;
  #protoStart = 0;
  #protoLength = 0;
  #externalStart = 0;
  #externalLength = 0;
  #requestIdStart = 0;

  constructor(localIp: string, ip4Prefix: string) {
    this.#localIp = localIp;
    this.#ip4Prefix = ip4Prefix;
  }

  addTo(headers: HeaderBlock, peer: string, scheme: string, random: Random): void {
    if (peer !== this.#peer || scheme !== this.#scheme) this.#build(peer, scheme);
    headers.removeId(FORWARDED_PROTO.id);
    headers.removeId(EXTERNAL_ADDRESS.id);
    headers.removeId(REQUEST_ID.id);
    const lines = this.#lines;
    const start = headers.room(lines.length);
    lines.copyTo(headers.memory, start);
    addWritten(headers, FORWARDED_FOR, start, this.#addressLength);
    addWritten(headers, FORWARDED_PROTO, start + this.#protoStart, this.#protoLength);
    addWritten(headers, EXTERNAL_ADDRESS, start + this.#externalStart, this.#externalLength);
    const idStart = start + this.#requestIdStart;
    writeRequestId(headers.memory.bytes, idStart + REQUEST_ID.bytes.length + 2, random);
    addWritten(headers, REQUEST_ID, idStart, REQUEST_ID_BYTES);
  }

  #build(peer: string, scheme: string): void {
    const ip = isLoopback(peer) ? this.#localIp : peer;
    const address = mappedPrefix(this.#ip4Prefix, ip) + ip;
    const external = mappedPrefix(this.#ip4Prefix, peer) + peer;
    const lines = this.#lines;
    let at = lines.write(0, `${FORWARDED_FOR.name}: ${address}\r\n`);
    this.#protoStart = at;
    at = lines.write(at, `${FORWARDED_PROTO.name}: ${scheme}\r\n`);
    this.#externalStart = at;
    at = lines.write(at, `${EXTERNAL_ADDRESS.name}: ${external}\r\n`);
    this.#requestIdStart = at;
    lines.write(at, `${REQUEST_ID.name}: ${' '.repeat(REQUEST_ID_BYTES)}\r\n`);
    this.#peer = peer;
    this.#scheme = scheme;
    this.#addressLength = address.length;
    this.#protoLength = scheme.length;
    this.#externalLength = external.length;
  }
}

/** Adds a field whose line is already written. */
function addWritten(headers: HeaderBlock, key: HeaderKey, start: number, valueLength: number): void {
  const nameEnd = start + key.bytes.length;
  const valueEnd = nameEnd + 2 + valueLength;
  headers.addField(key.id, start, nameEnd, nameEnd + 2, valueEnd, valueEnd + 2);
}

/** Returns whether a client is on the loopback interface: x-forwarded-for then has the server's own address. */
export function isLoopback(ip: string): boolean {
  return ip === '127.0.0.1' || ip === '::1';
}

/** Returns `prefix`, which maps an IPv4 address to IPv6, or '' if none is configured or the address is IPv6. */
export function mappedPrefix(prefix: string, ip: string): string {
  return prefix !== '' && !ip.includes(':') ? prefix : '';
}

const FORWARDED_FOR = headerKey('x-forwarded-for');
const FORWARDED_PROTO = headerKey('x-forwarded-proto');
const EXTERNAL_ADDRESS = headerKey('x-envoy-external-address');
const REQUEST_ID = headerKey('x-request-id');
