// Parses the ClientHello (RFC 8446, section 4.1.2), the first message of a TLS client.
//
// What counts as a hello follows BoringSSL, because filter chains must be chosen as in Envoy. The extensions that the inspector does
// not use are not checked here: the server that gets the connection does that.

import { ByteReader, wholeVector } from './byte-reader.js';

export const CLIENT_HELLO = 1;

/** Types of extensions. */
export const Extension = {
  ServerName: 0,
  SupportedGroups: 10,
  PointFormats: 11,
  SignatureAlgorithms: 13,
  Alpn: 16,
  SupportedVersions: 43,
  EncryptedClientHello: 0xfe0d,
} as const;

/** The parts of a hello, valid as long as the bytes that they are views of. */
export interface ClientHello {
  /** The version in the fixed part: at most TLS 1.2. */
  readonly legacyVersion: number;
  readonly cipherSuites: Uint8Array;
  readonly compressionMethods: Uint8Array;
  /** All extensions, one after another; empty without. */
  readonly extensions: Uint8Array;
}

const RANDOM_BYTES = 32;
const MAX_SESSION_ID_BYTES = 32;

/** Returns undefined if the structure is invalid. */
export function parseClientHello(content: Uint8Array): ClientHello | undefined {
  const reader = new ByteReader(content);
  const legacyVersion = reader.integer(2);
  if (legacyVersion < 0 || reader.take(RANDOM_BYTES) === undefined) return undefined;
  const sessionId = reader.vector(1);
  if (sessionId === undefined || sessionId.length > MAX_SESSION_ID_BYTES) return undefined;
  const cipherSuites = reader.vector(2);
  if (cipherSuites === undefined || cipherSuites.length < 2 || cipherSuites.length % 2 !== 0) return undefined;
  const compressionMethods = reader.vector(1);
  if (compressionMethods === undefined || compressionMethods.length === 0) return undefined;
  const extensions = reader.isAtEnd ? NONE : reader.vector(2);
  if (extensions === undefined || !reader.isAtEnd || !areExtensions(extensions)) return undefined;
  return { legacyVersion, cipherSuites, compressionMethods, extensions };
}

const NONE = new Uint8Array();

/** A bit for each type of extension; all 0 between two calls of areExtensions(). */
const seen = new Uint8Array(65536 / 8);

/** Returns whether the list is well-formed and has no type twice. */
function areExtensions(list: Uint8Array): boolean {
  let isValid = true;
  let count = 0;
  const reader = new ByteReader(list);
  while (isValid && !reader.isAtEnd) {
    const type = reader.integer(2);
    isValid = type >= 0 && reader.vector(2) !== undefined && (seen[type >> 3]! & (1 << (type & 7))) === 0;
    if (!isValid) break;
    seen[type >> 3]! |= 1 << (type & 7);
    count++;
  }
  for (const { type } of extensionsOf(list)) {
    if (count-- === 0) break;
    seen[type >> 3] = 0;
  }
  return isValid;
}

export interface ExtensionEntry {
  readonly type: number;
  readonly content: Uint8Array;
}

export function* extensionsOf(list: Uint8Array): Generator<ExtensionEntry> {
  const reader = new ByteReader(list);
  for (;;) {
    const type = reader.integer(2);
    const content = reader.vector(2);
    if (type < 0 || content === undefined) return;
    yield { type, content };
  }
}

/** Returns the content of an extension; undefined without it. */
export function extensionOf(hello: ClientHello, type: number): Uint8Array | undefined {
  for (const entry of extensionsOf(hello.extensions)) if (entry.type === type) return entry.content;
  return undefined;
}

/** Returns the client's protocols in its order; undefined if it offers none or the list is invalid. */
export function alpnOf(hello: ClientHello): string[] | undefined {
  const list = wholeVector(extensionOf(hello, Extension.Alpn) ?? NONE, 2);
  if (list === undefined || list.length < 2) return undefined;
  const protocols: string[] = [];
  for (const reader = new ByteReader(list); !reader.isAtEnd; ) {
    const name = reader.vector(1);
    if (name === undefined || name.length === 0) return undefined;
    protocols.push(Buffer.from(name.buffer, name.byteOffset, name.length).toString('latin1'));
  }
  return protocols;
}

export const HOST_NAME = 0;
const MAX_HOST_NAME_BYTES = 255;

/** Returns the server name in lower case, '' without one; undefined if the extension is invalid. */
export function serverNameOf(hello: ClientHello): string | undefined {
  const content = extensionOf(hello, Extension.ServerName);
  if (content === undefined) return '';
  const entry = new ByteReader(wholeVector(content, 2) ?? NONE);
  const type = entry.integer(1);
  const name = entry.vector(2);
  if (type !== HOST_NAME || name === undefined || !entry.isAtEnd) return undefined;
  if (name.length === 0 || name.length > MAX_HOST_NAME_BYTES || name.includes(0)) return undefined;
  const text = Buffer.from(name.buffer, name.byteOffset, name.length).toString('latin1');
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

const TLS_1_0 = 0x0301;
const TLS_1_3 = 0x0304;

/** Returns whether the client's version is TLS 1.0 to 1.3. */
export function hasKnownVersion({ legacyVersion }: ClientHello): boolean {
  return legacyVersion >= TLS_1_0 && legacyVersion <= TLS_1_3;
}

const ECH_OUTER = 0;
/** Two algorithms and the ID of a configuration. */
const ECH_HEADER_BYTES = 5;

/** Returns whether the extension encrypted_client_hello (RFC 9849, section 5) is absent or well-formed. */
export function isEchValid(hello: ClientHello): boolean {
  const content = extensionOf(hello, Extension.EncryptedClientHello);
  if (content === undefined) return true;
  const reader = new ByteReader(content);
  const type = reader.integer(1);
  if (type !== ECH_OUTER) return type >= 0;
  if (reader.take(ECH_HEADER_BYTES) === undefined || reader.vector(2) === undefined) return false;
  const payload = reader.vector(2);
  return payload !== undefined && payload.length > 0 && reader.isAtEnd;
}
