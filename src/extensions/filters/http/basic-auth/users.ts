// Users and their passwords, as lines of htpasswd with SHA-1: `name:{SHA}digest`.

import { createHash, timingSafeEqual } from 'node:crypto';
import { BatonError, byteText } from '../../../sdk.js';

const SHA = '{SHA}';
const DIGEST_CHARACTERS = 28;

export class Users {
  /** Digests by name, which has one character per byte. */
  readonly #digests = new Map<string, Buffer>();

  /** Throws a BatonError CONFIG_INVALID for an invalid line; its message never contains a password. `where`: the path of the text. */
  constructor(text: string, where: string) {
    const fail = (reason: string): never => {
      throw new BatonError('CONFIG_INVALID', `basic auth: ${reason}`, { where });
    };
    for (const line of text.split('\n')) {
      if (line === '' || line.startsWith('#')) continue;
      const at = line.indexOf(':');
      if (at < 0) fail('invalid htpasswd format, username:password is expected');
      const name = byteText(line.slice(0, at));
      const digest = line.slice(at + 1);
      if (name === '' || digest === '') fail('empty user name or password');
      if (!digest.startsWith(SHA)) fail('unsupported htpasswd format: please use {SHA}');
      if (digest.length !== SHA.length + DIGEST_CHARACTERS) fail('invalid htpasswd format, invalid SHA hash length');
      if (this.#digests.has(name)) fail('duplicate users');
      this.#digests.set(name, Buffer.from(digest.slice(SHA.length), 'base64'));
    }
  }

  /** Returns whether the password is that of the user. Both have one character per byte. */
  accept(name: string, password: string): boolean {
    const digest = createHash('sha1').update(password, 'latin1').digest();
    const expected = this.#digests.get(name);
    return expected !== undefined && expected.length === digest.length && timingSafeEqual(expected, digest);
  }
}
