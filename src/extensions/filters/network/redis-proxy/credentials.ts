// What clients must authenticate with.

import { timingSafeEqual } from 'node:crypto';
import type { RedisProxy } from '../../../../config/generated/api.js';
import { readDataSource } from '../../../sdk.js';

/** The name that clients without one of their own use. */
const DEFAULT_USER = Buffer.from('default');

export class ClientCredentials {
  readonly #username: Buffer | undefined;
  readonly #passwords: readonly Buffer[];

  constructor(config: RedisProxy) {
    const {
      downstream_auth_password: one,
      downstream_auth_passwords: several = [],
      downstream_auth_username: name,
    } = config;
    const sources = several.length > 0 || one === undefined ? several : [one];
    const username = name === undefined ? undefined : readDataSource(name);
    this.#username = username?.length === 0 ? undefined : username;
    this.#passwords = sources.map((source) => readDataSource(source)).filter(({ length }) => length > 0);
  }

  /** Clients must authenticate. */
  get areRequired(): boolean {
    return this.#passwords.length > 0;
  }

  get hasUsername(): boolean {
    return this.#username !== undefined;
  }

  accept(password: Buffer, username: Buffer = this.#username ?? DEFAULT_USER): boolean {
    const isUser = equal(username, this.#username ?? DEFAULT_USER);
    let isPassword = false;
    for (const known of this.#passwords) isPassword = equal(password, known) || isPassword;
    return isUser && isPassword;
  }
}

function equal(given: Buffer, known: Buffer): boolean {
  return given.length === known.length && timingSafeEqual(given, known);
}
