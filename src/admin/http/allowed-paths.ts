// admin.allow_paths: which paths may be requested.

import { BatonError } from '../../common/errors/errors.js';
import { lowerAscii } from '../../common/text/lower-ascii.js';
import { compileFullMatch } from '../../common/text/regex.js';
import type { StringMatcher } from '../../config/generated/api.js';
import { located } from '../../http/routing/matching/string-rule.js';

/** Returns whether a path with its query is allowed. */
export type PathRule = (pathAndQuery: string) => boolean;

/**
 * Returns the rule of a list of matchers, one of which must match; an empty list allows everything.
 * @throws BatonError CONFIG_INVALID or REGEX_INVALID
 */
export function allowedPaths(matchers: readonly StringMatcher[]): PathRule {
  if (matchers.length === 0) return () => true;
  const rules = matchers.map(compile);
  return (path) => rules.some((rule) => rule(path));
}

function compile(matcher: StringMatcher, index: number): PathRule {
  const { exact, prefix, suffix, contains, safe_regex: regex, ignore_case: ignoresCase = false } = matcher;
  const fold = ignoresCase ? lowerAscii : (text: string) => text;
  const rule = (pattern: string, matches: (path: string, pattern: string) => boolean): PathRule => {
    const folded = fold(pattern);
    return (path) => matches(fold(path), folded);
  };
  if (exact !== undefined) return rule(exact, (path, pattern) => path === pattern);
  if (prefix !== undefined) return rule(prefix, (path, pattern) => path.startsWith(pattern));
  if (suffix !== undefined) return rule(suffix, (path, pattern) => path.endsWith(pattern));
  if (contains !== undefined) return rule(contains, (path, pattern) => path.includes(pattern));
  if (regex !== undefined) {
    const where = `admin.allow_paths[${index}].safe_regex.regex`;
    const compiled = located(where, () => compileFullMatch(regex.regex ?? ''));
    return (path) => compiled.test(path);
  }
  throw new BatonError('CONFIG_INVALID', 'a string matcher needs exact, prefix, suffix, contains or safe_regex', {
    where: `admin.allow_paths[${index}]`,
  });
}
