// Names of headers that a list of string matchers takes (envoy.type.matcher.v3.ListStringMatcher), in whatever case they come.

import type { ListStringMatcher, StringMatcher } from '../../../../config/generated/api.js';
import { compileStringMatcher, type HeaderBlock, type StringRule } from '../../../sdk.js';

export class NameRules {
  readonly #rules: readonly StringRule[];

  constructor(rules: readonly StringRule[]) {
    this.#rules = rules;
  }

  /** Whether the field's name is one of them. */
  take(headers: HeaderBlock, index: number): boolean {
    const { memory } = headers;
    for (const rule of this.#rules)
      if (rule.matches(memory, headers.nameStart(index), headers.nameEnd(index))) return true;
    return false;
  }
}

/** Undefined: the list is empty or absent. Throws a BatonError that tells what is wrong with it; `where` is its path. */
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
