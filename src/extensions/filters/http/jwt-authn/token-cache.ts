// Tokens whose signature has been verified, so that it need not be verified again (jwt_cache_config).

import type { JwtCacheConfig } from '../../../../config/generated/api.js';
import type { Token } from './token.js';

const DEFAULT_SIZE = 100;
const DEFAULT_TOKEN_BYTES = 4096;

export class TokenCache {
  readonly #size: number;
  readonly #maxTokenBytes: number;
  /** The least recently used one first. */
  readonly #tokens = new Map<string, Token>();

  constructor({ jwt_cache_size: size = 0, jwt_max_token_size: maxTokenBytes = 0 }: JwtCacheConfig) {
    this.#size = size || DEFAULT_SIZE;
    this.#maxTokenBytes = maxTokenBytes || DEFAULT_TOKEN_BYTES;
  }

  get(text: string): Token | undefined {
    const token = this.#tokens.get(text);
    if (token === undefined) return undefined;
    this.#tokens.delete(text);
    this.#tokens.set(text, token);
    return token;
  }

  add(text: string, token: Token): void {
    if (text.length > this.#maxTokenBytes) return;
    if (this.#tokens.size >= this.#size)
      for (const oldest of this.#tokens.keys()) {
        this.#tokens.delete(oldest);
        break;
      }
    this.#tokens.set(text, token);
  }
}
