// importPublicKey() and verifySignature().

import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import { LuaError, type LuaMethod } from '../../../../sdk.js';
import { LuaClass } from './classes.js';

const HASHES = new Set(['SHA1', 'SHA224', 'SHA256', 'SHA384', 'SHA512']);

/** Keys by their DER, one character per byte; a script may take them from requests. */
const MAX_KEYS = 64;

export class LuaPublicKey {
  readonly #der: string | null;

  constructor(der: string | null) {
    this.#der = der;
  }

  get lua(): LuaClass {
    return LuaClass.PublicKey;
  }

  get(): string | null {
    return this.#der;
  }
}

/** The keys that scripts of one VM have imported. */
export class PublicKeys {
  readonly #keys = new Map<string, KeyObject>();

  /** `der`: a SubjectPublicKeyInfo. The result holds nothing if it is not a key. */
  import(der: string): LuaPublicKey {
    if (this.#keys.has(der)) return new LuaPublicKey(der);
    try {
      const key = createPublicKey({ key: Buffer.from(der, 'latin1'), format: 'der', type: 'spki' });
      if (this.#keys.size >= MAX_KEYS) this.#keys.delete(this.#keys.keys().next().value!);
      this.#keys.set(der, key);
      return new LuaPublicKey(der);
    } catch {
      return new LuaPublicKey(null);
    }
  }

  /** Returns whether the signature is valid, and why it is not. */
  verify(hash: string, der: string, signature: string, data: string): [boolean, string | null] {
    const key = this.#keys.get(der);
    if (key === undefined) throw new LuaError('invalid public key');
    const name = hash.toUpperCase();
    if (!HASHES.has(name)) return [false, `${hash} is not supported.`];
    try {
      const isValid = verify(name, Buffer.from(data, 'latin1'), key, Buffer.from(signature, 'latin1'));
      return isValid ? [true, null] : [false, 'Failed to verify digest. Error code: 0'];
    } catch {
      return [false, 'Failed to verify digest. Error code: -1'];
    }
  }
}

export const PUBLIC_KEY: readonly LuaMethod[] = [['get', '', LuaPublicKey.prototype.get]];
