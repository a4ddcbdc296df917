// Matchers of stat names (envoy.type.matcher.v3.StringMatcher), which can also decide for all names under a prefix.

import { BatonError } from '../../common/errors/errors.js';
import { lowerAscii } from '../../common/text/lower-ascii.js';
import { compileFullMatch } from '../../common/text/regex.js';
import type { StringMatcher } from '../../config/generated/api.js';

export interface NameMatcher {
  matches(name: string): boolean;
  /** Returns whether all names with this prefix match, or none does; undefined if it depends on the rest of the name. */
  matchesAll(prefix: string): boolean | undefined;
}

/** @throws BatonError CONFIG_INVALID or REGEX_INVALID */
export function compileNameMatcher(matcher: StringMatcher): NameMatcher {
  const { exact, prefix, suffix, contains, safe_regex: regex, ignore_case: ignoresCase = false } = matcher;
  const fold = ignoresCase ? lowerAscii : (text: string) => text;
  if (exact !== undefined) {
    const expected = fold(exact);
    return {
      matches: (name) => fold(name) === expected,
      matchesAll: (start) => (expected.startsWith(fold(start)) ? undefined : false),
    };
  }
  if (prefix !== undefined) {
    const expected = fold(prefix);
    return {
      matches: (name) => fold(name).startsWith(expected),
      matchesAll: (start) =>
        fold(start).startsWith(expected) ? true : expected.startsWith(fold(start)) ? undefined : false,
    };
  }
  if (suffix !== undefined) {
    const expected = fold(suffix);
    return { matches: (name) => fold(name).endsWith(expected), matchesAll: () => undefined };
  }
  if (contains !== undefined) {
    const expected = fold(contains);
    return {
      matches: (name) => fold(name).includes(expected),
      matchesAll: (start) => (fold(start).includes(expected) ? true : undefined),
    };
  }
  if (regex !== undefined) {
    const compiled = compileFullMatch(regex.regex ?? '');
    return { matches: (name) => compiled.test(name), matchesAll: () => undefined };
  }
  throw new BatonError('CONFIG_INVALID', 'a string matcher needs exact, prefix, suffix, contains or safe_regex');
}

/** Matches if any of the matchers does. */
export function anyOf(matchers: readonly NameMatcher[]): NameMatcher {
  return {
    matches: (name) => matchers.some((matcher) => matcher.matches(name)),
    matchesAll: (prefix) => {
      const answers = matchers.map((matcher) => matcher.matchesAll(prefix));
      if (answers.includes(true)) return true;
      return answers.includes(undefined) ? undefined : false;
    },
  };
}

/** Matches if the other matcher does not. */
export function noneOf(matcher: NameMatcher): NameMatcher {
  return {
    matches: (name) => !matcher.matches(name),
    matchesAll: (prefix) => {
      const answer = matcher.matchesAll(prefix);
      return answer === undefined ? undefined : !answer;
    },
  };
}
