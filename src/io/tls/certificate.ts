// The contents of an X.509 certificate, computed from its DER when they are first read. The TLS library has verified and parsed the
// certificate before: a field that is malformed here is empty.

import { createHash } from 'node:crypto';
import { type AlternativeNames, alternativeNames } from './alternative-names.js';
import type { CertificateFacts, ParsedName } from './connection-security.js';
import { type DerElement, DerTag, derContent, derElements, integerValue, objectIdText, timeMs } from './der.js';
import { nameText, parseName } from './distinguished-name.js';

export class Certificate implements CertificateFacts {
  readonly der: Uint8Array;
  #fields: Fields | undefined;
  #subject: string | undefined;
  #issuer: string | undefined;
  #subjectName: ParsedName | undefined;
  #sha256: string | undefined;
  #sha1: string | undefined;
  #names: AlternativeNames | undefined;
  #urlEncodedPem: string | undefined;

  /** @param der must not change afterwards */
  constructor(der: Uint8Array) {
    this.der = der;
  }

  get subject(): string {
    return (this.#subject ??= nameText(this.#parsed.subject));
  }
  get issuer(): string {
    return (this.#issuer ??= nameText(this.#parsed.issuer));
  }
  get subjectName(): ParsedName {
    return (this.#subjectName ??= parseName(this.#parsed.subject));
  }
  get serial(): string {
    return serialText(this.#parsed.serial);
  }
  get sha256(): string {
    return (this.#sha256 ??= createHash('sha256').update(this.der).digest('hex'));
  }
  get sha1(): string {
    return (this.#sha1 ??= createHash('sha1').update(this.der).digest('hex'));
  }
  get uriSans(): readonly string[] {
    return this.#alternativeNames.uri;
  }
  get dnsSans(): readonly string[] {
    return this.#alternativeNames.dns;
  }
  get ipSans(): readonly string[] {
    return this.#alternativeNames.ip;
  }
  get emailSans(): readonly string[] {
    return this.#alternativeNames.email;
  }
  get otherNameSans(): readonly string[] {
    return this.#alternativeNames.otherName;
  }
  get extensionOids(): readonly string[] {
    return this.#parsed.extensions.map(({ id }) => id);
  }
  get pem(): string {
    const lines =
      Buffer.from(this.der)
        .toString('base64')
        .match(/.{1,64}/g) ?? [];
    return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n');
  }
  get urlEncodedPem(): string {
    return (this.#urlEncodedPem ??= this.pem.replace(/[\n +/=]/g, encodeURIComponent));
  }
  get validFromMs(): number {
    return this.#parsed.validFromMs;
  }
  get validUntilMs(): number {
    return this.#parsed.validUntilMs;
  }

  get #parsed(): Fields {
    return (this.#fields ??= parse(this.der));
  }
  get #alternativeNames(): AlternativeNames {
    if (this.#names === undefined) {
      const extension = this.#parsed.extensions.find(({ id }) => id === SUBJECT_ALTERNATIVE_NAME);
      this.#names = alternativeNames(derContent(extension?.value ?? new Uint8Array(), DerTag.Sequence));
    }
    return this.#names;
  }
}

const SUBJECT_ALTERNATIVE_NAME = '2.5.29.17';

interface Fields {
  readonly serial: Uint8Array;
  /** Contents of the SEQUENCEs. */
  readonly issuer: Uint8Array;
  readonly subject: Uint8Array;
  readonly validFromMs: number;
  readonly validUntilMs: number;
  readonly extensions: readonly { readonly id: string; readonly value: Uint8Array }[];
}

/** Explicit tags of optional fields. */
const VERSION = 0xa0;
const EXTENSIONS = 0xa3;

function parse(der: Uint8Array): Fields {
  const all = derElements(derContent(derContent(der, DerTag.Sequence), DerTag.Sequence));
  const [serial, , issuer, validity, subject, , ...optional] = all[0]?.tag === VERSION ? all.slice(1) : all;
  const [from, until] = derElements(contentOf(validity));
  const extensions = optional.find(({ tag }) => tag === EXTENSIONS);
  return {
    serial: contentOf(serial),
    issuer: contentOf(issuer),
    subject: contentOf(subject),
    validFromMs: from === undefined ? 0 : timeMs(from),
    validUntilMs: until === undefined ? 0 : timeMs(until),
    extensions: derElements(derContent(contentOf(extensions), DerTag.Sequence)).map(({ content }) => {
      // A flag may stand between both.
      const parts = derElements(content);
      return { id: objectIdText(contentOf(parts[0])), value: contentOf(parts.at(-1)) };
    }),
  };
}

function contentOf(element: DerElement | undefined): Uint8Array {
  return element?.content ?? new Uint8Array();
}

/** As OpenSSL prints it: in whole bytes, without leading zero bytes. */
function serialText(content: Uint8Array): string {
  const value = integerValue(content);
  if (value === 0n) return '0';
  const digits = (value < 0n ? -value : value).toString(16);
  return `${value < 0n ? '-' : ''}${digits.length % 2 === 0 ? '' : '0'}${digits}`;
}
