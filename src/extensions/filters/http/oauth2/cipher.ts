// Signatures and encryption of cookies, in Envoy's formats. All texts have one character for each byte.

import { createCipheriv, createDecipheriv, createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { decoded } from '../jwt-authn/token.js';

/** Why a text is not decrypted; for logs. */
export interface DecryptFailure {
  readonly failure: string;
}

/** A plaintext, and whether its cipher was AES-256-CBC. */
export interface Decrypted {
  readonly text: string;
  readonly isLegacy: boolean;
}

const GCM = 'gcm.';
const GCM_IV_BYTES = 12;
const TAG_BYTES = 16;
const CBC_IV_BYTES = 16;

/** The keys that follow from a secret. */
export class CookieKeys {
  readonly secret: string;
  readonly #secret: Buffer;
  readonly #cipherKey: Buffer;

  constructor(secret: string) {
    this.secret = secret;
    this.#secret = Buffer.from(secret, 'latin1');
    this.#cipherKey = createHash('sha256').update(this.#secret).digest();
  }

  /** Returns a signature in Base64. */
  sign(message: string): string {
    return this.#digest(message).toString('base64');
  }

  /** Returns whether the signature is that of the message; older versions of Envoy encode its hexadecimal form. */
  verify(message: string, signature: string): boolean {
    const digest = this.#digest(message);
    return (
      isEqual(digest.toString('base64'), signature) ||
      isEqual(Buffer.from(digest.toString('hex')).toString('base64'), signature)
    );
  }

  /** Encrypts with AES-256-CBC, Envoy's default, or AES-256-GCM. */
  encrypt(text: string, isGcm: boolean): string {
    const bytes = Buffer.from(text, 'latin1');
    if (!isGcm) {
      const iv = randomBytes(CBC_IV_BYTES);
      const cipher = createCipheriv('aes-256-cbc', this.#cipherKey, iv);
      return Buffer.concat([iv, cipher.update(bytes), cipher.final()]).toString('base64url');
    }
    const iv = randomBytes(GCM_IV_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.#cipherKey, iv);
    const parts = [iv, cipher.update(bytes), cipher.final(), cipher.getAuthTag()];
    return GCM + Buffer.concat(parts).toString('base64url');
  }

  /** @param allowsCbc whether AES-256-CBC, which does not authenticate, is accepted */
  decrypt(text: string, allowsCbc: boolean): Decrypted | DecryptFailure {
    try {
      if (text.startsWith(GCM)) return this.#decryptGcm(text.slice(GCM.length));
      if (allowsCbc) return this.#decryptCbc(text);
      return { failure: 'ciphertext has no algorithm marker and legacy CBC decryption is disabled' };
    } catch {
      return { failure: 'failed to finalize decryption' };
    }
  }

  #decryptGcm(text: string): Decrypted | DecryptFailure {
    const bytes = decoded(text) ?? NONE;
    if (bytes.length < GCM_IV_BYTES + TAG_BYTES) return { failure: 'Invalid encrypted data' };
    const decipher = createDecipheriv('aes-256-gcm', this.#cipherKey, bytes.subarray(0, GCM_IV_BYTES));
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    const plain = [decipher.update(bytes.subarray(GCM_IV_BYTES, -TAG_BYTES)), decipher.final()];
    return { text: Buffer.concat(plain).toString('latin1'), isLegacy: false };
  }

  #decryptCbc(text: string): Decrypted | DecryptFailure {
    const bytes = decoded(text) ?? NONE;
    if (bytes.length <= CBC_IV_BYTES) return { failure: 'Invalid encrypted data' };
    const decipher = createDecipheriv('aes-256-cbc', this.#cipherKey, bytes.subarray(0, CBC_IV_BYTES));
    const plain = [decipher.update(bytes.subarray(CBC_IV_BYTES)), decipher.final()];
    return { text: Buffer.concat(plain).toString('latin1'), isLegacy: true };
  }

  #digest(message: string): Buffer {
    return createHmac('sha256', this.#secret).update(Buffer.from(message, 'latin1')).digest();
  }
}

/** Compares without revealing by its time where the texts differ. */
export function isEqual(one: string, other: string): boolean {
  return one.length === other.length && timingSafeEqual(Buffer.from(one, 'latin1'), Buffer.from(other, 'latin1'));
}

/** Returns 16 hexadecimal digits. */
export function randomFlow(): string {
  return randomBytes(8).toString('hex');
}

/** The PKCE verifier of a flow, with its challenge (RFC 7636, 4.1 and 4.2). */
export function newVerifier(): { readonly verifier: string; readonly challenge: string } {
  const verifier = randomBytes(32).toString('base64url');
  return { verifier, challenge: createHash('sha256').update(verifier).digest('base64url') };
}

const NONE = Buffer.alloc(0);
