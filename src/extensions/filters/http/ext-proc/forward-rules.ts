// Which fields of heads and trailers the processor gets (HeaderForwardingRules).

import type { HeaderForwardingRules, ListStringMatcher } from '../../../../config/generated/api.js';
import { compileStringMatcher, type StringRule } from '../../../sdk.js';

export class ForwardRules {
  readonly #allowed: readonly StringRule[];
  readonly #disallowed: readonly StringRule[];

  /** `where`: the path of the rules. Throws a BatonError for an invalid expression. */
  constructor(rules: HeaderForwardingRules, where: string) {
    this.#allowed = compile(rules.allowed_headers, `${where}.allowed_headers`);
    this.#disallowed = compile(rules.disallowed_headers, `${where}.disallowed_headers`);
  }

  /** Returns whether the processor gets fields of this name, which is in lower case. */
  allows(name: string): boolean {
    if (this.#disallowed.some((rule) => rule.matchesText(name))) return false;
    return this.#allowed.length === 0 || this.#allowed.some((rule) => rule.matchesText(name));
  }
}

function compile(list: ListStringMatcher | undefined, where: string): StringRule[] {
  return (list?.patterns ?? []).map((pattern, index) => compileStringMatcher(pattern, `${where}.patterns[${index}]`));
}
