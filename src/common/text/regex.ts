// Regular expressions written by users: always RE2, which matches in linear time.

import type RE2Class from 're2';
import { BatonError, messageOf } from '../errors/errors.js';
import { loadNative } from '../package/native-code.js';
import { regexSize } from './regex-size.js';

/** A compiled expression with the interface of RegExp. */
export type Regex = RegExp;

/** Limits of an expression: length in characters, and cost as regexSize() estimates it. */
interface Bounds {
  readonly length: number;
  readonly cost: number;
}

/** Limits for configurations: an expression within them compiles in less than a tenth of a second. */
const CONFIGURED: Bounds = { length: 32 * 1024, cost: 64 * 1024 };
/**
 * Limits for admin requests, which match up to a million names: an expression within them takes a few milliseconds at most.
 */
const REQUESTED: Bounds = { length: 4096, cost: 4096 };

/** An expression that does not compile or costs too much. */
export class RegexError extends BatonError {
  /** What is wrong with it, in RE2's words if RE2 refused it. */
  readonly reason: string;
  readonly isTooLarge: boolean;

  constructor(message: string, reason = message) {
    super('REGEX_INVALID', message);
    this.reason = reason;
    // Then RE2 was not called.
    this.isTooLarge = message === reason;
  }
}

/**
 * Compiles an expression that may match anywhere in its input.
 * @throws RegexError
 */
export function compileRegex(pattern: string, flags = ''): Regex {
  return compile(pattern, flags, CONFIGURED);
}

/**
 * Compiles an expression of a request, as compileRegex() does.
 * @throws RegexError, also for expressions that a configuration may contain
 */
export function compileRequestedRegex(pattern: string): Regex {
  return compile(pattern, '', REQUESTED);
}

function compile(pattern: string, flags: string, bounds: Bounds): Regex {
  const RE2 = loadRe2();
  check(pattern, bounds);
  try {
    return new RE2(pattern, flags);
  } catch (error) {
    const reason = messageOf(error);
    throw new RegexError(`invalid regular expression '${shorten(pattern)}': ${reason}`, reason);
  }
}

/**
 * Throws for an expression that is too long or costly for RE2: RE2's own limit is a program of several megabytes, which
 * takes half a second.
 */
function check(pattern: string, { cost: maxCost, length: maxLength }: Bounds): void {
  if (pattern.length > maxLength) {
    throw new RegexError(`a regular expression of ${pattern.length} characters is too long: at most ${maxLength}`);
  }
  const { cost } = regexSize(pattern);
  if (cost <= maxCost) return;
  throw new RegexError(`a regular expression that makes about ${cost} instructions is too costly: at most ${maxCost}`);
}

/**
 * Compiles an expression that must match its whole input, as Envoy's RegexMatcher does.
 * @throws RegexError
 */
export function compileFullMatch(pattern: string): Regex {
  return compileFull(pattern, CONFIGURED);
}

/**
 * Compiles an expression of a request, as compileFullMatch() does.
 * @throws RegexError, also for expressions that a configuration may contain
 */
export function compileRequestedFullMatch(pattern: string): Regex {
  return compileFull(pattern, REQUESTED);
}

function compileFull(pattern: string, bounds: Bounds): Regex {
  compile(pattern, '', bounds);
  return new (loadRe2())(`^(?:${pattern})$`);
}

/**
 * Replaces matches as RE2's GlobalReplace, and thus Envoy, does: an empty match directly after another match is ignored, so
 * that `.*` matches a text once. Takes linear time in the number of matches, which clients may make as large as the text.
 * The binding's replace() with a function does not: it counts the characters before each match.
 */
export class Replacement {
  readonly #regex: Regex;
  /** Literal texts, and between them group numbers; undefined if it names a missing group, and then RE2 replaces nothing. */
  readonly #parts: readonly (string | number)[] | undefined;
  readonly #mayMatchEmpty: boolean;

  /**
   * @param pattern the expression to replace, which must compile
   * @param substitution `\1` stands for a group, `\0` for the match, `\\` for a backslash
   * @throws BatonError REGEX_INVALID for a malformed substitution
   */
  constructor(pattern: string, substitution: string) {
    this.#regex = compileRegex(pattern, 'g');
    const parts = partsOf(substitution);
    this.#parts = missingIn(parts, pattern) === undefined ? parts : undefined;
    // Of RE2's empty-width assertions, only the word boundary does not match in an empty text.
    this.#mayMatchEmpty = compileRegex(pattern).test('') || pattern.includes('\\b');
  }

  /** Returns `text` with all matches replaced. `encode` is applied to the literal parts of the substitution. */
  apply(text: string, encode: (own: string) => string = unchanged): string {
    if (this.#parts === undefined) return text;
    const parts = this.#parts.map((part) => (typeof part === 'string' ? encode(part) : part));
    return this.#mayMatchEmpty ? this.#oneByOne(text, parts) : text.replace(this.#regex, templateOf(parts));
  }

  #oneByOne(text: string, parts: readonly (string | number)[]): string {
    const regex = this.#regex;
    let replaced = '';
    let lastEnd = -1;
    let copied = 0;
    regex.lastIndex = 0;
    for (let found = regex.exec(text); found !== null; found = regex.exec(text)) {
      const { 0: match, index } = found;
      if (match !== '' || index !== lastEnd) {
        replaced += text.slice(copied, index);
        for (const part of parts) replaced += typeof part === 'string' ? part : (found[part] ?? '');
        copied = lastEnd = index + match.length;
      }
      if (match !== '') continue;
      // There are no matches after the end.
      if (index === text.length) break;
      regex.lastIndex = index + (text.codePointAt(index)! > 0xffff ? 2 : 1);
    }
    return replaced + text.slice(copied);
  }
}

/**
 * Returns the template for String.replace(). Groups have two digits, so that a digit after a group is not read as part of
 * it.
 */
function templateOf(parts: readonly (string | number)[]): string {
  return parts
    .map((part) => (part === 0 ? '$&' : typeof part === 'number' ? `$0${part}` : part.replaceAll('$', '$$$$')))
    .join('');
}

function unchanged(text: string): string {
  return text;
}

/**
 * Returns the first group that the substitution names and the expression does not have, as `\2`; undefined if there is none, or if either
 * is invalid.
 */
export function missingGroup(pattern: string, substitution: string): string | undefined {
  try {
    const group = missingIn(partsOf(substitution), pattern);
    return group === undefined ? undefined : `\\${group}`;
  } catch {
    return undefined;
  }
}

function missingIn(parts: readonly (string | number)[], pattern: string): number | undefined {
  const groups = parts.some((part) => typeof part === 'number' && part > 0) ? groupCount(pattern) : 0;
  return parts.find((part): part is number => typeof part === 'number' && part > groups);
}

function partsOf(substitution: string): (string | number)[] {
  return substitution.split(/(\\.)/s).map((part) => {
    if (part === '\\\\') return '\\';
    if (!part.includes('\\')) return part;
    if (/^\\[0-9]$/.test(part)) return Number(part[1]);
    const remedy = 'write \\\\ for a backslash';
    const message = `the substitution holds '${part}': a backslash must be followed by a digit or a backslash`;
    throw new BatonError('REGEX_INVALID', message, { remedy });
  });
}

/** Returns the number of capture groups of a valid expression. */
function groupCount(pattern: string): number {
  const RE2 = loadRe2();
  // The empty alternative matches anything, and a match has an entry for each group.
  return new RE2(`|${pattern}`).exec('')!.length - 1;
}

let loaded: typeof RE2Class | undefined;

/** Loads the addon at the first expression, so that configurations without one do not load it. */
function loadRe2(): typeof RE2Class {
  loaded ??= loadNative('re2') as typeof RE2Class;
  return loaded;
}

function shorten(pattern: string): string {
  return pattern.length > 100 ? `${pattern.slice(0, 100)}…` : pattern;
}
