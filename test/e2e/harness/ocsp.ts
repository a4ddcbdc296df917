// OCSP responses in DER form (RFC 6960). Their signatures are not valid: servers send them without verifying them.

import { randomBytes } from 'node:crypto';
import type { IssuedCertificate } from './certificates.js';

const DAY_MS = 86_400_000;

export interface OcspRequest {
  /** From when to when it is valid, in days from now; without an end it has no nextUpdate. Default: -1 to 7. */
  readonly validDays?: readonly [number, number?];
}

/** Returns a response that says `good` about each of `certificates`. */
export function ocspResponse(
  certificates: readonly IssuedCertificate[],
  { validDays: [from, to] = [-1, 7] }: OcspRequest = {},
): Buffer {
  const answers = certificates.map(({ x509: { serialNumber } }) => {
    const id = sequence(SHA1, octets(randomBytes(20)), octets(randomBytes(20)), integer(serialNumber));
    return sequence(id, der(0x80), time(from), ...(to === undefined ? [] : [der(0xa0, time(to))]));
  });
  const responder = der(0xa2, octets(randomBytes(20)));
  const data = sequence(responder, time(from), sequence(...answers));
  const basic = sequence(data, ECDSA_SHA256, der(0x03, Buffer.concat([Buffer.of(0), randomBytes(64)])));
  return sequence(der(0x0a, Buffer.of(0)), der(0xa0, sequence(BASIC, octets(basic))));
}

/** Returns what a responder answers that cannot say anything: `tryLater`. */
export function unsuccessfulResponse(): Buffer {
  return sequence(der(0x0a, Buffer.of(3)));
}

/** The time that a response gives, in the form of /certs. */
export function ocspTime(days: number): string {
  return `${new Date(NOW + days * DAY_MS).toISOString().slice(0, 19)}Z`;
}

const NOW = Date.now();

const SHA1 = sequence(der(0x06, Buffer.from('2b0e03021a', 'hex')), der(0x05));
const ECDSA_SHA256 = sequence(der(0x06, Buffer.from('2a8648ce3d040302', 'hex')));
/** id-pkix-ocsp-basic */
const BASIC = der(0x06, Buffer.from('2b0601050507300101', 'hex'));

function time(days: number): Buffer {
  return der(0x18, Buffer.from(ocspTime(days).replace(/[-:T]/g, '')));
}

function integer(hex: string): Buffer {
  const even = hex.length % 2 === 0 ? hex : `0${hex}`;
  const bytes = Buffer.from(even, 'hex');
  return der(0x02, bytes[0]! >= 0x80 ? Buffer.concat([Buffer.of(0), bytes]) : bytes);
}

function octets(bytes: Buffer): Buffer {
  return der(0x04, bytes);
}

function sequence(...parts: Buffer[]): Buffer {
  return der(0x30, Buffer.concat(parts));
}

function der(tag: number, content: Buffer = Buffer.alloc(0)): Buffer {
  const { length } = content;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.of(tag, ...size), content]);
}
