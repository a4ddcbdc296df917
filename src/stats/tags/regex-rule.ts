// A tag that the configuration extracts with a regular expression.

import type { Regex } from '../../common/text/regex.js';
import { compileTagRegex } from './tag-regex.js';
import type { Found } from './token-pattern.js';

/**
 * Removes the first capture group from the name. The value is the second group if it matched a non-empty text, else the
 * first.
 */
export class RegexRule {
  /** The token that a name must begin with according to the expression; '' if there is none. */
  readonly firstToken: string;
  readonly #regex: Regex;

  /** @throws BatonError REGEX_INVALID */
  constructor(pattern: string) {
    this.#regex = compileTagRegex(pattern, 'd');
    this.firstToken = /^\^(\w+)(?:\\\.|\$$)/.exec(pattern)?.[1] ?? '';
  }

  find(name: string): Found | undefined {
    // Most names do not match, and test() costs a fraction of exec().
    if (!this.#regex.test(name)) return undefined;
    const match = this.#regex.exec(name);
    const removed = match?.indices?.[1];
    if (removed === undefined || removed[0] === removed[1]) return undefined;
    return { value: match![2] || match![1]!, from: removed[0], to: removed[1] };
  }
}
