// Distinguished names of certificates, as text in the form of RFC 2253.

import type { ParsedName } from './connection-security.js';
import { DerTag, derContent, derElements, hex, objectIdText, stringText } from './der.js';

/** OpenSSL's short names of attributes. The value of another attribute is printed as hexadecimal DER. */
const SHORT_NAMES: ReadonlyMap<string, string> = new Map([
  ['2.5.4.3', 'CN'],
  ['2.5.4.4', 'SN'],
  ['2.5.4.5', 'serialNumber'],
  ['2.5.4.6', 'C'],
  ['2.5.4.7', 'L'],
  ['2.5.4.8', 'ST'],
  ['2.5.4.9', 'street'],
  ['2.5.4.10', 'O'],
  ['2.5.4.11', 'OU'],
  ['2.5.4.12', 'title'],
  ['2.5.4.13', 'description'],
  ['2.5.4.15', 'businessCategory'],
  ['2.5.4.17', 'postalCode'],
  ['2.5.4.20', 'telephoneNumber'],
  ['2.5.4.41', 'name'],
  ['2.5.4.42', 'GN'],
  ['2.5.4.43', 'initials'],
  ['2.5.4.44', 'generationQualifier'],
  ['2.5.4.45', 'x500UniqueIdentifier'],
  ['2.5.4.46', 'dnQualifier'],
  ['2.5.4.65', 'pseudonym'],
  ['2.5.4.72', 'role'],
  ['1.2.840.113549.1.9.1', 'emailAddress'],
  ['1.2.840.113549.1.9.2', 'unstructuredName'],
  ['1.2.840.113549.1.9.8', 'unstructuredAddress'],
  ['0.9.2342.19200300.100.1.1', 'UID'],
  ['0.9.2342.19200300.100.1.25', 'DC'],
  ['1.3.6.1.4.1.311.60.2.1.1', 'jurisdictionL'],
  ['1.3.6.1.4.1.311.60.2.1.2', 'jurisdictionST'],
  ['1.3.6.1.4.1.311.60.2.1.3', 'jurisdictionC'],
]);

/** @param name the content of the SEQUENCE of relative distinguished names */
export function nameText(name: Uint8Array): string {
  return derElements(name)
    .map(({ content }) =>
      derElements(content)
        .map((attribute) => attributeText(attribute.content))
        .reverse()
        .join('+'),
    )
    .reverse()
    .join(',');
}

function attributeText(content: Uint8Array): string {
  const [type, value] = derElements(content);
  if (type?.tag !== DerTag.ObjectId || value === undefined) return '';
  const id = objectIdText(type.content);
  const short = SHORT_NAMES.get(id);
  const text = short === undefined ? undefined : stringText(value);
  return `${short ?? id}=${text === undefined ? `#${hex(value.whole).toUpperCase()}` : escaped(text)}`;
}

/** Escapes special characters, and the bytes of characters that are not printable ASCII. */
function escaped(text: string): string {
  return text
    .replace(/^[ #]|[,+"\\<>;]| $/g, '\\$&')
    .replace(/[^ -~]+/g, (others) => hex(Buffer.from(others)).toUpperCase().replace(/../g, '\\$&'));
}

export function parseName(name: Uint8Array): ParsedName {
  let commonName = '';
  const organizationNames: string[] = [];
  for (const relative of derElements(name)) {
    for (const attribute of derElements(relative.content)) {
      const [, value] = derElements(attribute.content);
      const text = value && stringText(value);
      if (text === undefined || text === '') continue;
      const id = SHORT_NAMES.get(objectIdText(derContent(attribute.content, DerTag.ObjectId)));
      if (id === 'CN') commonName = text;
      if (id === 'O') organizationNames.push(text);
    }
  }
  return { commonName, organizationNames };
}
