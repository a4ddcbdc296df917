// What the filter injects.

import type { Generic } from '../../../../config/generated/api.js';
import { byteText, type GenericSecret, type HeaderKey, headerKey } from '../../../sdk.js';

export interface Credential {
  readonly key: HeaderKey;
  /** One character for each byte; '' while there is none. */
  readonly value: string;
  close?(): void;
}

/** Bytes that a field may have. */
const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** A secret, which a source may change. */
export class SecretCredential implements Credential {
  readonly key: HeaderKey;
  readonly #prefix: string;
  readonly #secret: GenericSecret;

  constructor({ header, header_value_prefix: prefix = '' }: Generic, secret: GenericSecret) {
    this.key = genericKey(header);
    this.#prefix = byteText(prefix);
    this.#secret = secret;
  }

  get value(): string {
    // Files often end with a line break.
    const secret = this.#secret.value.replace(/[\r\n]+$/, '');
    return secret !== '' && FIELD_VALUE.test(secret) ? this.#prefix + secret : '';
  }
}

/** Throws a BatonError for a name that no field can have. */
export function genericKey(header: string | undefined): HeaderKey {
  return headerKey(header || 'authorization');
}
