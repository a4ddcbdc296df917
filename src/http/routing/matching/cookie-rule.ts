// envoy.config.route.v3.CookieMatcher, compiled: one condition on the first cookie of a name.

import { headerKey } from '../../../common/text/header-names.js';
import type { CookieMatcher } from '../../../config/generated/api.js';
import type { HeaderBlock } from '../../headers/header-block.js';
import { type CookieValue, findCookie } from './cookies.js';
import { compileStringMatcher, type StringRule } from './string-rule.js';

const COOKIE = headerKey('cookie');

export class CookieRule {
  readonly #name: Uint8Array;
  readonly #text: StringRule;
  readonly #isInverted: boolean;

  /** @throws BatonError when the matcher is invalid; `where` is its path in the configuration. */
  constructor(config: CookieMatcher, where: string) {
    this.#name = new TextEncoder().encode(config.name ?? '');
    this.#text = compileStringMatcher(config.string_match ?? {}, `${where}.string_match`);
    this.#isInverted = config.invert_match ?? false;
  }

  /** As in Envoy, an inverted rule matches requests without the cookie. */
  matches(headers: HeaderBlock): boolean {
    return this.#holds(headers) !== this.#isInverted;
  }

  #holds(headers: HeaderBlock): boolean {
    const { memory } = headers;
    for (let index = headers.find(COOKIE); index >= 0; index = headers.find(COOKIE, index + 1)) {
      if (findCookie(memory.bytes, headers.valueStart(index), headers.valueEnd(index), this.#name, found))
        return this.#text.matches(memory, found.start, found.end);
    }
    return false;
  }
}

const found: CookieValue = { start: 0, end: 0 };
