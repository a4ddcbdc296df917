// Reads what a handshake has established. The native engine reports numbers and one text, which cost less than an object with a string for
// each name.

import { type NativeTransport, TlsFlag, type TlsNames, TlsNumber, type TlsState } from '../shim.js';

type Native = Pick<NativeTransport, 'tlsState' | 'tlsNames'>;

const numbers = new Int32Array(TlsNumber.Count);
/** Names by number. OpenSSL has few. */
const ciphers = new Map<number, string>();
const groups = new Map<number, string>();
const signatures = new Map<number, string>();

/** Returns undefined for plain connections. */
export function readTlsState(native: Native, id: number): TlsState | undefined {
  const texts = native.tlsState(id, numbers);
  if (texts === undefined) return undefined;
  const flags = numbers[TlsNumber.Flags]!;
  const alpnEnd = numbers[TlsNumber.AlpnLength]!;
  const nameEnd = alpnEnd + numbers[TlsNumber.NameLength]!;
  return {
    version: numbers[TlsNumber.Version]!,
    cipher: nameOf(native, id, ciphers, numbers[TlsNumber.Cipher]!, 'cipher'),
    group: nameOf(native, id, groups, numbers[TlsNumber.Group]!, 'group'),
    signature: nameOf(native, id, signatures, numbers[TlsNumber.Signature]!, 'signature'),
    alpn: decoded(texts.slice(0, alpnEnd)),
    serverName: decoded(texts.slice(alpnEnd, nameEnd)),
    staple: numbers[TlsNumber.Staple]!,
    isResumed: (flags & TlsFlag.Resumed) !== 0,
    hasPeerCertificate: (flags & TlsFlag.HasPeerCertificate) !== 0,
    isPeerVerified: (flags & TlsFlag.Verified) !== 0,
    sessionId: texts.slice(nameEnd),
  };
}

function nameOf(native: Native, id: number, names: Map<number, string>, number: number, kind: keyof TlsNames): string {
  if (number === 0) return '';
  let name = names.get(number);
  if (name === undefined) {
    name = native.tlsNames(id)?.[kind] ?? '';
    names.set(number, name);
  }
  return name;
}

/** Bytes that are not UTF-8 are replaced. */
function decoded(bytes: string): string {
  for (let i = 0; i < bytes.length; i++) {
    if (bytes.charCodeAt(i) > 0x7f) return Buffer.from(bytes, 'latin1').toString();
  }
  return bytes;
}
