// Regular expressions that users write: always RE2, whose time is linear in its input.

import { createRequire } from 'node:module';
import type RE2Class from 're2';
import { BatonError, messageOf } from './errors.js';

/** A compiled expression; it behaves as a RegExp. */
export type Regex = RegExp;

/**
 * Compiles an expression that may match anywhere in its input.
 * @throws BatonError REGEX_INVALID
 */
export function compileRegex(pattern: string, flags = ''): Regex {
  const RE2 = loadRe2();
  if (pattern.length > MAX_PATTERN) {
    throw new BatonError('REGEX_INVALID', `a regular expression of ${pattern.length} characters is too long`, {
      remedy: `at most ${MAX_PATTERN}`,
    });
  }
  try {
    return new RE2(pattern, flags);
  } catch (error) {
    throw new BatonError('REGEX_INVALID', `invalid regular expression '${shorten(pattern)}': ${messageOf(error)}`);
  }
}

/**
 * Compiles an expression that must match its whole input, as Envoy's RegexMatcher does.
 * @throws BatonError REGEX_INVALID
 */
export function compileFullMatch(pattern: string): Regex {
  compileRegex(pattern);
  return compileRegex(`^(?:${pattern})$`);
}

/**
 * Envoy's substitution (`\1` for a capture group, `\0` for the match) as String.replace wants it.
 * @param pattern what is replaced: an expression that compiles
 * @throws BatonError REGEX_INVALID for a group that `pattern` does not have
 */
export function replacementOf(substitution: string, pattern: string): string {
  return substitution.replace(/\\(\d)|\\\\|\$/g, (all, group: string | undefined) => {
    if (group === undefined) return all === '$' ? '$$' : '\\';
    if (group === '0') return '$&';
    if (Number(group) > groupCount(pattern)) {
      const message = `the substitution names \\${group}, a group that the expression does not have`;
      const remedy = 'put what it stands for in parentheses, or write \\\\ for a backslash';
      throw new BatonError('REGEX_INVALID', message, { remedy });
    }
    // Two digits, for a digit may follow.
    return `$0${group}`;
  });
}

/** How many capture groups an expression has that compiles. */
export function groupCount(pattern: string): number {
  const RE2 = loadRe2();
  // The alternative in front matches anything, and a match has a place for each group.
  return new RE2(`|${pattern}`).exec('')!.length - 1;
}

const MAX_PATTERN = 32 * 1024;

let loaded: typeof RE2Class | undefined;

/** The addon is loaded at the first expression: configurations without one never pay for it. */
function loadRe2(): typeof RE2Class {
  loaded ??= createRequire(import.meta.url)('re2') as typeof RE2Class;
  return loaded;
}

function shorten(pattern: string): string {
  return pattern.length > 100 ? `${pattern.slice(0, 100)}…` : pattern;
}
