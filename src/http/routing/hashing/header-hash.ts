// A header in a hash policy: hashes its value, or the values of all its fields independent of their order. List headers
// (HeaderKey.joinedIn) are hashed as one joined value.

import { BatonError } from '../../../common/errors/errors.js';
import { type HeaderKey, headerKey } from '../../../common/text/header-names.js';
import type { Replacement } from '../../../common/text/regex.js';
import { type Word64, xxh64, xxh64Text } from '../../../common/xxh64.js';
import type { RouteAction_HashPolicy_Header } from '../../../config/generated/api.js';
import { checkFieldName } from '../../headers/field-name.js';
import type { HeaderBlock } from '../../headers/header-block.js';
import { replacedText } from '../matching/regex-text.js';
import { replacementOf } from '../matching/string-rule.js';

export class HeaderHash {
  /** Undefined for a part of the request line. */
  readonly #key: HeaderKey | undefined;
  readonly #isPath: boolean;
  readonly #rewrite: Replacement | undefined;

  /** @throws BatonError CONFIG_INVALID or REGEX_INVALID; `where` is its path in the configuration */
  constructor(config: RouteAction_HashPolicy_Header, where: string) {
    const name = (config.header_name ?? '').toLowerCase();
    const rewrite = config.regex_rewrite;
    this.#isPath = name === ':path';
    this.#key = name === ':path' || name === ':method' ? undefined : keyOf(name, `${where}.header_name`);
    this.#rewrite = rewrite && replacementOf(rewrite, `${where}.regex_rewrite`);
  }

  evaluate(headers: HeaderBlock, _info: unknown, hash: Word64): boolean {
    const key = this.#key;
    if (key === undefined) {
      if (this.#isPath) this.#hash(headers, headers.pathStart, headers.pathEnd, hash);
      else this.#hash(headers, headers.methodStart, headers.methodEnd, hash);
      return true;
    }
    const index = headers.findValue(key);
    if (index < 0) return false;
    const isWhole = index >= headers.size || headers.findNext(key, index) < 0;
    if (isWhole) this.#hash(headers, headers.valueStart(index), headers.valueEnd(index), hash);
    else this.#hashAll(headers, key, hash);
    return true;
  }

  #hash(headers: HeaderBlock, start: number, end: number, hash: Word64): void {
    const { memory } = headers;
    if (this.#rewrite === undefined) xxh64(memory.bytes, start, end, hash);
    else xxh64Text(replacedText(memory, start, end, this.#rewrite), hash);
  }

  #hashAll(headers: HeaderBlock, key: HeaderKey, hash: Word64): void {
    const values: string[] = [];
    for (let index = headers.find(key); index >= 0; index = headers.find(key, index + 1)) {
      const [start, end] = [headers.valueStart(index), headers.valueEnd(index)];
      const { memory } = headers;
      values.push(
        this.#rewrite === undefined ? memory.text(start, end) : replacedText(memory, start, end, this.#rewrite),
      );
    }
    // As in Envoy, each hash is the seed of the next.
    hash.set(0, 0);
    for (const value of values.sort()) xxh64Text(value, hash, hash.lo, hash.hi);
  }
}

function keyOf(name: string, where: string): HeaderKey {
  if (name.startsWith(':') && name !== ':authority') {
    const remedy = "name a header, or ':authority', ':path' or ':method'";
    throw new BatonError('CONFIG_INVALID', `requests have no '${name}' here`, { where, remedy });
  }
  const field = name === ':authority' ? 'host' : name;
  checkFieldName(field, where);
  return headerKey(field);
}
