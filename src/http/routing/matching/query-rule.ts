// envoy.config.route.v3.QueryParameterMatcher, compiled: one condition on the first value of a query parameter. As in Envoy, routes match
// the query as sent, and rate limits match it unescaped: "role=%61dmin" is role=admin for rate limits.

import type { QueryParameterMatcher } from '../../../config/generated/api.js';
import type { Memory } from '../../../io/memory.js';
import type { HeaderBlock } from '../../headers/header-block.js';
import { findQueryParameter, type QueryValue } from './query.js';
import { compileStringMatcher, type StringRule } from './string-rule.js';

export class QueryRule {
  readonly #name: Uint8Array;
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
    this.#text =
      config.string_match === undefined
        ? undefined
        : compileStringMatcher(config.string_match, `${where}.string_match`);
    this.#expectsPresence = config.present_match ?? true;
  }

  matches(headers: HeaderBlock): boolean {
    const { memory } = headers;
    if (this.#unescapes) {
      const query = unescapedQuery(headers);
      if (query !== undefined) return this.#matchesUnescaped(memory, query);
    }
    const isPresent = findQueryParameter(memory.bytes, headers.pathStart, headers.pathEnd, this.#name, found);
    if (this.#text === undefined) return isPresent === this.#expectsPresence;
    return isPresent && this.#text.matches(memory, found.start, found.end);
  }

  #matchesUnescaped(memory: Memory, query: string): boolean {
    const name = Buffer.from(this.#name).toString('latin1');
    const parameters = query.split('&').map((parameter) => {
      const [own, ...value] = parameter.split('=');
      return { name: unescaped(own!), value: unescaped(value.join('=')) };
    });
    const first = parameters.find((parameter) => parameter.name === name);
    if (this.#text === undefined) return (first !== undefined) === this.#expectsPresence;
    if (first === undefined) return false;
    const start = memory.scratch(first.value.length);
    memory.write(start, first.value);
    const isMatch = this.#text.matches(memory, start, start + first.value.length);
    memory.withdrawScratch(start);
    return isMatch;
  }
}

/** Returns the query of a path, without its question mark; undefined if it has no escapes. */
function unescapedQuery(headers: HeaderBlock): string | undefined {
  const path = headers.pathText();
  const query = path.slice(path.indexOf('?') + 1);
  return query.length < path.length && query.includes('%') ? query : undefined;
}

/** Replaces %XX with its byte and keeps invalid escapes. One character per byte. */
function unescaped(text: string): string {
  return text.replace(/%[0-9a-f]{2}/gi, (found) => String.fromCharCode(Number.parseInt(found.slice(1), 16)));
}

const found: QueryValue = { start: 0, end: 0 };
