// By what a request is hashed, for clusters that choose hosts by hash: once, so that all its tries have the same hash.

import type { StreamInfo } from '../../../../access-log/stream/stream-info.js';
import { headerKey } from '../../../../common/text/header-names.js';
import { Word64 } from '../../../../common/xxh64.js';
import type { HeaderBlock } from '../../../../http/headers/header-block.js';
import type { HashPolicy } from '../../../../http/routing/hashing/hash-policy.js';

const SET_COOKIE = headerKey('set-cookie');

/** One object a router, used again for each of its requests. */
export class RequestHash {
  readonly #hash = new Word64();
  /** That the client gets with its response. */
  readonly #cookies: string[] = [];

  /** Undefined when the request has nothing of what the policy hashes. */
  of(policy: HashPolicy, headers: HeaderBlock, info: StreamInfo): Word64 | undefined {
    this.#cookies.length = 0;
    return policy.evaluate(headers, info, this.#hash, this.#cookies) ? this.#hash : undefined;
  }

  addCookies(response: HeaderBlock): void {
    for (const cookie of this.#cookies) response.add(SET_COOKIE, cookie);
  }
}
