// Matches field names against a list of string matchers (envoy.type.matcher.v3.ListStringMatcher), ignoring case.

import type { ListStringMatcher, StringMatcher } from '../../../../config/generated/api.js';
import { compileStringMatcher, type HeaderBlock, type StringRule } from '../../../sdk.js';

export class NameRules {
  readonly #rules: readonly StringRule[];

  constructor(rules: readonly StringRule[]) {
    this.#rules = rules;
  }

  /** Returns whether the name of a field matches. */
  take(headers: HeaderBlock, index: number): boolean {
    const { memory } = headers;
    for (const rule of this.#rules)
      if (rule.matches(memory, headers.nameStart(index), headers.nameEnd(index))) return true;
    return false;
  }

  /** Returns whether a name in lower case matches. */
  takeName(name: string): boolean {
    return this.#rules.some((rule) => rule.matchesText(name));
  }
}

/** Compiles a list; undefined if it is empty or absent. Throws a BatonError with `where`, the path of the list. */
export function compileNameRules(list: ListStringMatcher | undefined, where: string): NameRules | undefined {
  const patterns = list?.patterns ?? [];
  if (patterns.length === 0) return undefined;
  return new NameRules(
    patterns.map((pattern, index) => {
      const at = `${where}.patterns[${index}]`;
      compileStringMatcher(pattern, at);
      return compileStringMatcher(anyCase(pattern), at);
    }),
  );
}

function anyCase(pattern: StringMatcher): StringMatcher {
  const { safe_regex: expression } = pattern;
  if (expression === undefined) return { ...pattern, ignore_case: true };
  return { safe_regex: { ...expression, regex: `(?i)${expression.regex}` } };
}
