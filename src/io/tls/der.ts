// Reads DER (X.690), the encoding of certificates, without copying. Malformed input gives no elements; nothing is read beyond it.

export interface DerElement {
  /** Class, form and number in one byte, for example 0x30 for a SEQUENCE. */
  readonly tag: number;
  readonly content: Uint8Array;
  /** With tag and length. */
  readonly whole: Uint8Array;
}

export const DerTag = {
  Boolean: 0x01,
  Integer: 0x02,
  BitString: 0x03,
  OctetString: 0x04,
  Null: 0x05,
  ObjectId: 0x06,
  Enumerated: 0x0a,
  Utf8String: 0x0c,
  PrintableString: 0x13,
  T61String: 0x14,
  Ia5String: 0x16,
  UtcTime: 0x17,
  GeneralizedTime: 0x18,
  VisibleString: 0x1a,
  GeneralString: 0x1b,
  UniversalString: 0x1c,
  BmpString: 0x1e,
  Sequence: 0x30,
  Set: 0x31,
} as const;

/** Long form of a length, and of a tag's number. */
const LONG = 0x80;
const LONG_TAG = 0x1f;
const MAX_LENGTH_BYTES = 4;

/** Returns the elements of a constructed value, up to the first malformed one. */
export function derElements(bytes: Uint8Array): DerElement[] {
  const elements: DerElement[] = [];
  for (let at = 0; at + 2 <= bytes.length; ) {
    const begin = at;
    const tag = bytes[at++]!;
    if ((tag & LONG_TAG) === LONG_TAG) break;
    let length = bytes[at++]!;
    if (length >= LONG) {
      const count = length - LONG;
      if (count === 0 || count > MAX_LENGTH_BYTES || at + count > bytes.length) break;
      length = 0;
      for (const end = at + count; at < end; at++) length = length * 256 + bytes[at]!;
    }
    if (length > bytes.length - at) break;
    elements.push({ tag, content: bytes.subarray(at, at + length), whole: bytes.subarray(begin, at + length) });
    at += length;
  }
  return elements;
}

/** Returns the content of the first element if it has that tag; otherwise an empty one. */
export function derContent(bytes: Uint8Array, tag: number): Uint8Array {
  const [first] = derElements(bytes);
  return first?.tag === tag ? first.content : NOTHING;
}

const NOTHING = new Uint8Array();

/** Returns an OBJECT IDENTIFIER in dotted form; '' if it is malformed. */
export function objectIdText(content: Uint8Array): string {
  const arcs: bigint[] = [];
  let arc = 0n;
  for (const byte of content) {
    arc = arc * 128n + BigInt(byte & 0x7f);
    if ((byte & LONG) !== 0) continue;
    arcs.push(arc);
    arc = 0n;
  }
  const [first, ...rest] = arcs;
  if (first === undefined || ((content.at(-1) ?? LONG) & LONG) !== 0 || content.length > MAX_OBJECT_ID_BYTES) return '';
  const root = first < 80n ? first / 40n : 2n;
  return [root, first - root * 40n, ...rest].join('.');
}

const MAX_OBJECT_ID_BYTES = 128;

/** Returns an INTEGER as a number of any size. */
export function integerValue(content: Uint8Array): bigint {
  if (content.length === 0) return 0n;
  const value = BigInt(`0x${hex(content)}`);
  return (content[0]! & 0x80) === 0 ? value : value - (1n << BigInt(8 * content.length));
}

/** Returns the wall clock time of a UTCTime or GeneralizedTime in milliseconds; 0 if it is malformed. */
export function timeMs({ content, tag }: DerElement): number {
  const text = latin1(content);
  const match = /^(\d\d)?(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/.exec(text);
  if (match === null || (tag === DerTag.UtcTime) !== (match[1] === undefined)) return 0;
  const [, century, year, month, day, hour, minute, second] = match;
  // RFC 5280, section 4.1.2.5.1.
  const full = `${century ?? (Number(year) < 50 ? '20' : '19')}${year}`;
  return Date.parse(`${full}-${month}-${day}T${hour}:${minute}:${second}Z`) || 0;
}

/** Returns the text of a character string; undefined if the element is not one. */
export function stringText({ content, tag }: DerElement): string | undefined {
  switch (tag) {
    case DerTag.Utf8String:
      return utf8(content);
    case DerTag.PrintableString:
    case DerTag.T61String:
    case DerTag.Ia5String:
    case DerTag.VisibleString:
    case DerTag.GeneralString:
      return latin1(content);
    case DerTag.BmpString:
      return wideText(content, 2);
    case DerTag.UniversalString:
      return wideText(content, 4);
    default:
      return undefined;
  }
}

function wideText(content: Uint8Array, size: number): string {
  let text = '';
  for (let at = 0; at + size <= content.length; at += size) {
    let point = 0;
    for (let i = 0; i < size; i++) point = point * 256 + content[at + i]!;
    text += point <= MAX_CODE_POINT ? String.fromCodePoint(point) : '\ufffd';
  }
  return text;
}

const MAX_CODE_POINT = 0x10ffff;

export function hex(bytes: Uint8Array): string {
  return view(bytes).toString('hex');
}

export function latin1(bytes: Uint8Array): string {
  return view(bytes).toString('latin1');
}

export function utf8(bytes: Uint8Array): string {
  return view(bytes).toString('utf8');
}

function view(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}
