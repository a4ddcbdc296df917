// envoy.config.route.v3.QueryParameterMatcher: one condition on a query parameter, whose first value counts.

import type { QueryParameterMatcher } from '../../../config/generated/api.js';
import type { HeaderBlock } from '../../headers/header-block.js';
import { findQueryParameter, type QueryValue } from './query.js';
import { compileStringMatcher, type StringRule } from './string-rule.js';

export class QueryRule {
  readonly #name: Uint8Array;
  readonly #text: StringRule | undefined;
  readonly #wantsPresence: boolean;

  /** @throws BatonError when the matcher is invalid; `where` is its path in the configuration. */
  constructor(config: QueryParameterMatcher, where: string) {
    this.#name = new TextEncoder().encode(config.name ?? '');
    this.#text =
      config.string_match === undefined
        ? undefined
        : compileStringMatcher(config.string_match, `${where}.string_match`);
    this.#wantsPresence = config.present_match ?? true;
  }

  matches(headers: HeaderBlock): boolean {
    const { memory } = headers;
    const isPresent = findQueryParameter(memory.bytes, headers.pathStart, headers.pathEnd, this.#name, found);
    if (this.#text === undefined) return isPresent === this.#wantsPresence;
    return isPresent && this.#text.matches(memory, found.start, found.end);
  }
}

const found: QueryValue = { start: 0, end: 0 };
