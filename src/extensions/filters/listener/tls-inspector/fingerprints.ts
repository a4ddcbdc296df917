// JA3 and JA4 (%TLS_JA3_FINGERPRINT%, %TLS_JA4_FINGERPRINT%): short texts that are equal for clients of the same software.
// https://github.com/salesforce/ja3, https://github.com/FoxIO-LLC/ja4

import { createHash } from 'node:crypto';
import { ByteReader, integersOf } from './byte-reader.js';
import { type ClientHello, Extension, extensionOf, extensionsOf } from './client-hello.js';

/** The MD5 of version, cipher suites, extensions, groups and point formats in decimal. */
export function ja3(hello: ClientHello): string {
  const types = [...extensionsOf(hello.extensions)].map(({ type }) => type);
  const groups = extensionOf(hello, Extension.SupportedGroups)?.subarray(2) ?? [];
  const pointFormats = extensionOf(hello, Extension.PointFormats)?.subarray(1) ?? [];
  const parts = [
    [hello.legacyVersion],
    withoutGrease(integersOf(hello.cipherSuites)),
    withoutGrease(types),
    // Envoy leaves the reserved values in this list only.
    [...integersOf(Uint8Array.from(groups))],
    [...pointFormats],
  ];
  return createHash('md5')
    .update(parts.map((list) => list.join('-')).join(','))
    .digest('hex');
}

/** For example `t13d1516h2_8daaf6152771_02713d6af862`. */
export function ja4(hello: ClientHello): string {
  const ciphers = withoutGrease(integersOf(hello.cipherSuites));
  const entries = [...extensionsOf(hello.extensions)].filter(({ type }) => !isGrease(type));
  const hasName = entries.some(({ type }) => type === Extension.ServerName);
  const version = VERSION_TEXTS.get(versionOf(hello)) ?? '00';
  const counts = `${twoDigits(ciphers.length)}${twoDigits(entries.length)}`;
  const head = `t${version}${hasName ? 'd' : 'i'}${counts}${protocolCharacters(hello)}`;
  return `${head}_${hashOf(hexList(ciphers, true))}_${hashOf(
    extensionsText(
      entries.map(({ type }) => type),
      hello,
    ),
  )}`;
}

const VERSION_TEXTS: ReadonlyMap<number, string> = new Map([
  [0x0304, '13'],
  [0x0303, '12'],
  [0x0302, '11'],
  [0x0301, '10'],
]);

/** Returns the highest version that the client claims to support. */
function versionOf(hello: ClientHello): number {
  const offered = extensionOf(hello, Extension.SupportedVersions);
  if (offered === undefined) return hello.legacyVersion;
  const list = new ByteReader(offered).vector(1);
  if (list === undefined) return 0;
  return Math.max(...withoutGrease(integersOf(list)), 0) || hello.legacyVersion;
}

function twoDigits(count: number): string {
  return String(Math.min(count, 99)).padStart(2, '0');
}

/** Returns the first and last character of the client's first protocol. */
function protocolCharacters(hello: ClientHello): string {
  const content = extensionOf(hello, Extension.Alpn);
  const reader = new ByteReader(content ?? new Uint8Array());
  reader.integer(2);
  const name = reader.vector(1);
  if (name === undefined || name.length === 0) return '00';
  const [first, last] = [name[0]!, name.at(-1)!];
  if (isAlphanumeric(first) && isAlphanumeric(last)) return String.fromCharCode(first, last);
  return `${(first >> 4).toString(16)}${(last & 15).toString(16)}`;
}

function isAlphanumeric(byte: number): boolean {
  return /[0-9A-Za-z]/.test(String.fromCharCode(byte));
}

/** Sorted extensions except those that belong to the server's name, and signature algorithms in the client's order. */
function extensionsText(types: readonly number[], hello: ClientHello): string {
  const listed = types.filter((type) => type !== Extension.ServerName && type !== Extension.Alpn);
  if (listed.length === 0) return '';
  const algorithms = extensionOf(hello, Extension.SignatureAlgorithms)?.subarray(2) ?? new Uint8Array();
  const text = hexList([...integersOf(algorithms)], false);
  return `${hexList(listed, true)}${text === '' ? '' : `_${text}`}`;
}

function hexList(numbers: number[], isSorted: boolean): string {
  const list = isSorted ? numbers.sort((a, b) => a - b) : numbers;
  return list.map((number) => number.toString(16).padStart(4, '0')).join(',');
}

const HASH_CHARACTERS = 12;

function hashOf(text: string): string {
  if (text === '') return '0'.repeat(HASH_CHARACTERS);
  return createHash('sha256').update(text).digest('hex').slice(0, HASH_CHARACTERS);
}

/** RFC 8701: reserved values that clients send so that servers keep ignoring unknown ones. */
function isGrease(value: number): boolean {
  return (value & 0x0f0f) === 0x0a0a && value >> 8 === (value & 0xff);
}

function withoutGrease(values: Iterable<number>): number[] {
  return [...values].filter((value) => !isGrease(value));
}
