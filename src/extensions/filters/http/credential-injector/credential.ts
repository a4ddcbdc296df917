// What the filter injects.

import type { Generic } from '../../../../config/generated/api.js';
import { byteText, type GenericSecret, type HeaderKey, settableKey } from '../../../sdk.js';
import { FIELD_VALUE } from '../../common/field-value.js';

export interface Credential {
  readonly key: HeaderKey;
  /** One character for each byte; '' while there is none. */
  readonly value: string;
  close?(): void;
}

/** A secret, which a source may change. */
export class SecretCredential implements Credential {
  readonly key: HeaderKey;
  readonly #prefix: string;
  readonly #secret: GenericSecret;
  #value = '';
  /** The secret that is in the value. */
  #used = '';

  constructor({ header, header_value_prefix: prefix = '' }: Generic, secret: GenericSecret) {
    this.key = genericKey(header);
    this.#prefix = byteText(prefix);
    this.#secret = secret;
  }

  get value(): string {
    const { value: text } = this.#secret;
    if (text === this.#used) return this.#value;
    this.#used = text;
    // Files often end with a line break.
    const secret = text.replace(/[\r\n]+$/, '');
    this.#value = secret !== '' && FIELD_VALUE.test(secret) ? this.#prefix + secret : '';
    return this.#value;
  }
}

/** Throws a BatonError for a name that no field can have. */
export function genericKey(header: string | undefined): HeaderKey {
  return settableKey(header || 'authorization');
}
