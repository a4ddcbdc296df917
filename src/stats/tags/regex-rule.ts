// A tag that configuration finds with an expression of its own.

import type { Regex } from '../../common/text/regex.js';
import { compileTagRegex } from './tag-regex.js';
import type { Found } from './token-pattern.js';

/** The first capture group is taken out of the name; the second, if it matched anything, is the value, else the first. */
export class RegexRule {
  /** The token that a name must begin with, as the expression says it; '' when it does not. */
  readonly firstToken: string;
  readonly #regex: Regex;

  /** @throws BatonError REGEX_INVALID */
  constructor(pattern: string) {
    this.#regex = compileTagRegex(pattern, 'd');
    this.firstToken = /^\^(\w+)(?:\\\.|\$$)/.exec(pattern)?.[1] ?? '';
  }

  find(name: string): Found | undefined {
    // Most names have no match, which is told at a fraction of the cost of telling where one is.
    if (!this.#regex.test(name)) return undefined;
    const match = this.#regex.exec(name);
    const removed = match?.indices?.[1];
    if (removed === undefined || removed[0] === removed[1]) return undefined;
    return { value: match![2] || match![1]!, from: removed[0], to: removed[1] };
  }
}
