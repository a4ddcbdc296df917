// The static table of HPACK (RFC 7541, appendix A), and the kinds of field names.

import { ConnectionHeader, headerIdOf } from '../../../common/text/header-names.js';
import { TOKEN, textEnd } from '../../h1/head/characters.js';

/** The kind of a field: the header ID of its name (below 64), or one of these; with bits for what is invalid. */
export const enum FieldKind {
  Authority = 64,
  Method = 65,
  Path = 66,
  Scheme = 67,
  Status = 68,
  Protocol = 69,
  /** A name that begins with a colon, but is none of the above. */
  UnknownPseudo = 70,
  /** The name is not a token in lower case. */
  InvalidName = 1 << 7,
  /** The value has a control character. */
  InvalidValue = 1 << 8,
  /** Everything but the two bits above. */
  Mask = 127,
}

/** Bytes of an entry's record in a table. */
export const ENTRY_BYTES = 20;
/** Offsets of its members, each an Int32 in little-endian order. */
export const enum Entry {
  /** Offset of the line "name: value CRLF". The line of an :authority begins with "host", because it is forwarded so. */
  Line = 0,
  NameLength = 4,
  ValueLength = 8,
  /** The encoder uses a hash of the name in place of a kind, if the name has no header ID. */
  Kind = 12,
  /** Only in the table of an encoder: a hash of name and value. */
  Hash = 16,
}

/** Each entry is a name, and a value if there is one. */
const FIELDS = [
  ':authority',
  ':method GET',
  ':method POST',
  ':path /',
  ':path /index.html',
  ':scheme http',
  ':scheme https',
  ':status 200',
  ':status 204',
  ':status 206',
  ':status 304',
  ':status 400',
  ':status 404',
  ':status 500',
  'accept-charset',
  'accept-encoding gzip, deflate',
  'accept-language',
  'accept-ranges',
  'accept',
  'access-control-allow-origin',
  'age',
  'allow',
  'authorization',
  'cache-control',
  'content-disposition',
  'content-encoding',
  'content-language',
  'content-length',
  'content-location',
  'content-range',
  'content-type',
  'cookie',
  'date',
  'etag',
  'expect',
  'expires',
  'from',
  'host',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-range',
  'if-unmodified-since',
  'last-modified',
  'link',
  'location',
  'max-forwards',
  'proxy-authenticate',
  'proxy-authorization',
  'range',
  'referer',
  'refresh',
  'retry-after',
  'server',
  'set-cookie',
  'strict-transport-security',
  'transfer-encoding',
  'user-agent',
  'vary',
  'via',
  'www-authenticate',
];

export const STATIC_SIZE = FIELDS.length;

/** Names and values of the static table; index 1 is the first entry. */
export const STATIC_FIELDS: readonly { readonly name: string; readonly value: string }[] = [
  { name: '', value: '' },
  ...FIELDS.map((field) => {
    const space = field.indexOf(' ');
    return space < 0 ? { name: field, value: '' } : { name: field.slice(0, space), value: field.slice(space + 1) };
  }),
];

const PSEUDO_NAMES = [':authority', ':method', ':path', ':scheme', ':status', ':protocol'];
const PSEUDO_KINDS = [
  FieldKind.Authority,
  FieldKind.Method,
  FieldKind.Path,
  FieldKind.Scheme,
  FieldKind.Status,
  FieldKind.Protocol,
];
const encoder = new TextEncoder();
const PSEUDO_BYTES = PSEUDO_NAMES.map((name) => encoder.encode(name));

/** The name under which an :authority is stored. */
export const HOST_NAME = encoder.encode('host');

const COLON = 58;
const UPPER_A = 65;
const UPPER_Z = 90;

/** 1 for the bytes of field names: tokens without upper-case letters (RFC 9113, section 8.2.1). */
const LOWER_TOKEN = TOKEN.map((isAllowed, byte) => (byte >= UPPER_A && byte <= UPPER_Z ? 0 : isAllowed));

/** Returns the kind of the name bytes[start, end), with InvalidName where it applies. `view` covers the same bytes. */
export function kindOfName(bytes: Uint8Array, view: DataView, start: number, end: number): number {
  if (start === end) return FieldKind.InvalidName;
  if (bytes[start] === COLON) return kindOfPseudo(bytes, start, end);
  for (let at = start; at < end; at++) if (LOWER_TOKEN[bytes[at]!] === 0) return FieldKind.InvalidName;
  return headerIdOf(bytes, view, start, end);
}

/** Returns InvalidValue if bytes[start, end) has a control character other than a tab, or else 0. */
export function kindOfValue(bytes: Uint8Array, view: DataView, start: number, end: number): number {
  return textEnd(bytes, view, start, end) === end ? 0 : FieldKind.InvalidValue;
}

function kindOfPseudo(bytes: Uint8Array, start: number, end: number): number {
  const index = PSEUDO_BYTES.findIndex((name) => {
    if (name.length !== end - start) return false;
    for (let i = 0; i < name.length; i++) if (bytes[start + i] !== name[i]) return false;
    return true;
  });
  return index < 0 ? FieldKind.UnknownPseudo : PSEUDO_KINDS[index]!;
}

/** Returns the length of an entry's name in HPACK's sense, which differs from that in its line for an :authority. */
export function tableNameLength(kind: number, nameLength: number): number {
  return kind === FieldKind.Authority ? ':authority'.length : nameLength;
}

/** The records of the static table, followed by its lines; index 1 has the record 0. */
export const STATIC_ENTRIES = /* @__PURE__ */ makeEntries();

function makeEntries(): DataView {
  const lines: string[] = [];
  const records = new DataView(new ArrayBuffer(STATIC_SIZE * ENTRY_BYTES));
  let offset = records.byteLength;
  for (let index = 0; index < STATIC_SIZE; index++) {
    const { name, value } = STATIC_FIELDS[index + 1]!;
    const bytes = encoder.encode(name);
    const kind = kindOfName(bytes, new DataView(bytes.buffer), 0, bytes.length);
    const shown = kind === FieldKind.Authority ? 'host' : name;
    const line = `${shown}: ${value}\r\n`;
    const at = index * ENTRY_BYTES;
    records.setInt32(at + Entry.Line, offset, true);
    records.setInt32(at + Entry.NameLength, shown.length, true);
    records.setInt32(at + Entry.ValueLength, value.length, true);
    records.setInt32(at + Entry.Kind, kind, true);
    lines.push(line);
    offset += line.length;
  }
  const entries = new Uint8Array(offset);
  entries.set(new Uint8Array(records.buffer));
  entries.set(encoder.encode(lines.join('')), records.byteLength);
  return new DataView(entries.buffer);
}

/** By header ID: the first index of the name in the static table, or 0. */
export const STATIC_INDEX_BY_ID = /* @__PURE__ */ indexById();

function indexById(): Uint8Array {
  const indexes = new Uint8Array(64);
  for (let index = STATIC_SIZE; index > 0; index--) {
    const kind = STATIC_ENTRIES.getInt32((index - 1) * ENTRY_BYTES + Entry.Kind, true);
    if (kind > 0 && kind < FieldKind.Authority) indexes[kind] = index;
  }
  // An authority is sent as such, never as a host.
  indexes[ConnectionHeader.Host] = 0;
  return indexes;
}
