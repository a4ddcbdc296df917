// Subject alternative names of certificates (RFC 5280, section 4.2.1.6) as text.

import { addressOfBytes } from '../addresses/address.js';
import { type DerElement, DerTag, derElements, integerValue, latin1, objectIdText, stringText, utf8 } from './der.js';

/** The names of each kind, in the order of the certificate. */
export interface AlternativeNames {
  readonly uri: readonly string[];
  readonly dns: readonly string[];
  readonly ip: readonly string[];
  readonly email: readonly string[];
  readonly otherName: readonly string[];
}

/** Context-specific tags of GeneralName. */
const OTHER_NAME = 0xa0;
const EMAIL = 0x81;
const DNS = 0x82;
const URI = 0x86;
const IP = 0x87;
/** The tag around the value of an otherName. */
const OTHER_VALUE = 0xa0;

/** @param names the content of the SEQUENCE of general names */
export function alternativeNames(names: Uint8Array): AlternativeNames {
  const elements = derElements(names);
  const of = (tag: number, text: (element: DerElement) => string) =>
    elements.filter((element) => element.tag === tag).map((element) => shown(text(element)));
  return {
    uri: of(URI, plainText),
    dns: of(DNS, plainText),
    ip: of(IP, ipText),
    email: of(EMAIL, plainText),
    otherName: of(OTHER_NAME, ({ content }) => otherNameText(content)),
  };
}

function plainText({ content }: DerElement): string {
  return utf8(content);
}

function ipText({ content }: DerElement): string {
  return content.length === 4 || content.length === 16 ? addressOfBytes(content, 0).ip : '';
}

function otherNameText(content: Uint8Array): string {
  const [, wrapped] = derElements(content);
  const [value] = wrapped?.tag === OTHER_VALUE ? derElements(wrapped.content) : [];
  if (value === undefined) return '';
  switch (value.tag) {
    case DerTag.Null:
      return '';
    case DerTag.Boolean:
      return value.content[0] ? 'true' : 'false';
    case DerTag.Integer:
    case DerTag.Enumerated:
      return String(integerValue(value.content));
    case DerTag.ObjectId:
      return objectIdText(value.content);
    case DerTag.BitString:
      return utf8(value.content.subarray(1));
    case DerTag.OctetString:
      return utf8(value.content);
    case DerTag.UtcTime:
    case DerTag.GeneralizedTime:
      return latin1(value.content);
    case DerTag.Sequence:
    case DerTag.Set:
      return utf8(value.whole);
    default:
      return stringText(value) ?? '';
  }
}

/** Escapes control characters: names get into logs and headers. */
function shown(text: string): string {
  return text.replace(
    /[\0-\x1f\x7f-\x9f]/g,
    (character) => `\\${character.charCodeAt(0).toString(16).padStart(2, '0')}`,
  );
}
