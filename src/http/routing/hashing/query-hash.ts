// A query parameter in a hash policy: hashes its first value as sent.

import { type Word64, xxh64 } from '../../../common/xxh64.js';
import type { RouteAction_HashPolicy_QueryParameter } from '../../../config/generated/api.js';
import type { HeaderBlock } from '../../headers/header-block.js';
import { findQueryParameter, type QueryValue } from '../matching/query.js';

export class QueryHash {
  readonly #name: Uint8Array;

  constructor(config: RouteAction_HashPolicy_QueryParameter) {
    this.#name = new TextEncoder().encode(config.name ?? '');
  }

  evaluate(headers: HeaderBlock, _info: unknown, hash: Word64): boolean {
    const { bytes } = headers.memory;
    if (!findQueryParameter(bytes, headers.pathStart, headers.pathEnd, this.#name, found)) return false;
    xxh64(bytes, found.start, found.end, hash);
    return true;
  }
}

const found: QueryValue = { start: 0, end: 0 };
