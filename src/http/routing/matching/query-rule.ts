// envoy.config.route.v3.QueryParameterMatcher, compiled: one condition on the first value of a query parameter. As in Envoy, routes match
// the query as sent, and rate limits match it unescaped: "role=%61dmin" is role=admin for rate limits.

import { byteText } from '../../../common/text/byte-text.js';
import type { QueryParameterMatcher } from '../../../config/generated/api.js';
import type { Memory } from '../../../io/memory.js';
import type { HeaderBlock } from '../../headers/header-block.js';
import { decodedParameter } from './decoded-query.js';
import { findQueryParameter, type QueryValue } from './query.js';
import { compileStringMatcher, type StringRule } from './string-rule.js';

export class QueryRule {
  readonly #name: Uint8Array;
  /** The same with one character per byte. */
  readonly #nameText: string;
  readonly #text: StringRule | undefined;
  readonly #expectsPresence: boolean;
  readonly #unescapes: boolean;

  /**
   * @param unescapes names and values are unescaped before matching
   * @throws BatonError when the matcher is invalid; `where` is its path in the configuration.
   */
  constructor(config: QueryParameterMatcher, where: string, unescapes = false) {
    this.#unescapes = unescapes;
    this.#name = new TextEncoder().encode(config.name ?? '');
    this.#nameText = byteText(config.name ?? '');
    this.#text =
      config.string_match === undefined
        ? undefined
        : compileStringMatcher(config.string_match, `${where}.string_match`);
    this.#expectsPresence = config.present_match ?? true;
  }

  matches(headers: HeaderBlock): boolean {
    const { memory } = headers;
    if (this.#unescapes) {
      const path = headers.pathText();
      if (path.includes('%')) return this.#matchesText(memory, decodedParameter(path, this.#nameText));
    }
    const isPresent = findQueryParameter(memory.bytes, headers.pathStart, headers.pathEnd, this.#name, found);
    if (this.#text === undefined) return isPresent === this.#expectsPresence;
    return isPresent && this.#text.matches(memory, found.start, found.end);
  }

  #matchesText(memory: Memory, value: string | undefined): boolean {
    if (this.#text === undefined) return (value !== undefined) === this.#expectsPresence;
    if (value === undefined) return false;
    const start = memory.scratch(value.length);
    memory.write(start, value);
    const isMatch = this.#text.matches(memory, start, start + value.length);
    memory.withdrawScratch(start);
    return isMatch;
  }
}

const found: QueryValue = { start: 0, end: 0 };
