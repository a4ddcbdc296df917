// Regular expressions that users write: always RE2, whose time is linear in its input.

import type RE2Class from 're2';
import { BatonError, messageOf } from '../errors/errors.js';
import { loadNative } from '../package/native-code.js';

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
 * Replaces matches as RE2's GlobalReplace, and with it Envoy: an empty match right behind another match is none, so that `.*`
 * matches a text once.
 */
export class Replacement {
  readonly #regex: Regex;
  readonly #groups: number;
  /** Texts, and between them the numbers of groups. */
  readonly #parts: readonly (string | number)[];

  /**
   * @param pattern what is replaced: an expression that compiles
   * @param substitution `\1` stands for a group, `\0` for the match, `\\` for a backslash
   * @throws BatonError REGEX_INVALID for a substitution that `pattern` has no group for, or that cannot be read
   */
  constructor(pattern: string, substitution: string) {
    this.#regex = compileRegex(pattern, 'g');
    this.#groups = groupCount(pattern);
    this.#parts = partsOf(substitution, this.#groups);
  }

  /** `encode`: how the substitution's own text becomes a part of `text`. */
  apply(text: string, encode: (own: string) => string = asItIs): string {
    let lastEnd = -1;
    return text.replace(this.#regex, (...found: (string | number | undefined)[]) => {
      const match = found[0] as string;
      const offset = found[1 + this.#groups] as number;
      if (match === '' && offset === lastEnd) return '';
      lastEnd = offset + match.length;
      let replaced = '';
      for (const part of this.#parts) replaced += typeof part === 'string' ? encode(part) : (found[part] ?? '');
      return replaced;
    });
  }
}

function asItIs(text: string): string {
  return text;
}

function partsOf(substitution: string, groups: number): (string | number)[] {
  return substitution.split(/(\\.)/s).map((part) => {
    if (part === '\\\\') return '\\';
    if (!part.includes('\\')) return part;
    const group = /^\\[0-9]$/.test(part) ? Number(part[1]) : undefined;
    if (group !== undefined && group <= groups) return group;
    const remedy = 'put what it stands for in parentheses, or write \\\\ for a backslash';
    const message =
      group === undefined
        ? `the substitution holds '${part}': behind a backslash there must be a digit or another one`
        : `the substitution names ${part}, a group that the expression does not have`;
    throw new BatonError('REGEX_INVALID', message, { remedy });
  });
}

/** How many capture groups an expression has that compiles. */
function groupCount(pattern: string): number {
  const RE2 = loadRe2();
  // The alternative in front matches anything, and a match has a place for each group.
  return new RE2(`|${pattern}`).exec('')!.length - 1;
}

const MAX_PATTERN = 32 * 1024;

let loaded: typeof RE2Class | undefined;

/** The addon is loaded at the first expression: configurations without one never pay for it. */
function loadRe2(): typeof RE2Class {
  loaded ??= loadNative('re2') as typeof RE2Class;
  return loaded;
}

function shorten(pattern: string): string {
  return pattern.length > 100 ? `${pattern.slice(0, 100)}…` : pattern;
}
