// The hash of a request for clusters that pick hosts by hash. It is computed once, so that all tries have the same.

import type { StreamInfo } from '../../../../access-log/stream/stream-info.js';
import { headerKey } from '../../../../common/text/header-names.js';
import { Word64 } from '../../../../common/xxh64.js';
import type { HeaderBlock } from '../../../../http/headers/header-block.js';
import type { HashPolicy } from '../../../../http/routing/hashing/hash-policy.js';

const SET_COOKIE = headerKey('set-cookie');

/** One object per router, reused for each request. */
export class RequestHash {
  readonly #hash = new Word64();
  /** Set-Cookie values for the response. */
  readonly #cookies: string[] = [];

  /** Computes the hash. Returns undefined if the request has nothing that the policy hashes. */
  of(policy: HashPolicy, headers: HeaderBlock, info: StreamInfo): Word64 | undefined {
    this.#cookies.length = 0;
    return policy.evaluate(headers, info, this.#hash, this.#cookies) ? this.#hash : undefined;
  }

  addCookies(response: HeaderBlock): void {
    for (const cookie of this.#cookies) response.add(SET_COOKIE, cookie);
  }
}
