// Regular expressions that users write: always RE2, whose time is linear in its input.

import type RE2Class from 're2';
import { BatonError, messageOf } from '../errors/errors.js';
import { loadNative } from '../package/native-code.js';
import { regexSize } from './regex-size.js';

/** A compiled expression; it behaves as a RegExp. */
export type Regex = RegExp;

/** What an expression may be: its length in characters, and its cost as regexSize() has it. */
interface Bounds {
  readonly length: number;
  readonly cost: number;
}

/** Of a configuration: what is within them compiles in less than a tenth of a second. */
const CONFIGURED: Bounds = { length: 32 * 1024, cost: 64 * 1024 };
/** Of a request, which tries it on up to a million names: none of these takes longer than some milliseconds. */
const REQUESTED: Bounds = { length: 4096, cost: 4096 };

/** An expression that does not compile, or would cost too much. */
export class RegexError extends BatonError {
  /** What is wrong with it, in RE2's words if these are known. */
  readonly reason: string;
  readonly isTooLarge: boolean;

  constructor(message: string, reason = message) {
    super('REGEX_INVALID', message);
    this.reason = reason;
    // RE2 has not seen it.
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
 * Compiles an expression of a request, as compileRegex().
 * @throws RegexError also for what a configuration might have
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

/** Before RE2 has a look at it: its own limit is several megabytes of a program, which take it half a second. */
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
 * Compiles an expression of a request, as compileFullMatch().
 * @throws RegexError also for what a configuration might have
 */
export function compileRequestedFullMatch(pattern: string): Regex {
  return compileFull(pattern, REQUESTED);
}

function compileFull(pattern: string, bounds: Bounds): Regex {
  compile(pattern, '', bounds);
  return new (loadRe2())(`^(?:${pattern})$`);
}

/**
 * Replaces matches as RE2's GlobalReplace, and with it Envoy: an empty match right behind another match is none, so that `.*`
 * matches a text once. The time is linear in the number of matches, which clients may make as large as the text: the binding's
 * replace() is not where a function is what replaces, since it counts the characters in front of each match.
 */
export class Replacement {
  readonly #regex: Regex;
  /** Texts, and between them the numbers of groups. */
  readonly #parts: readonly (string | number)[];
  readonly #mayMatchNothing: boolean;

  /**
   * @param pattern what is replaced: an expression that compiles
   * @param substitution `\1` stands for a group, `\0` for the match, `\\` for a backslash
   * @throws BatonError REGEX_INVALID for a substitution that `pattern` has no group for, or that cannot be read
   */
  constructor(pattern: string, substitution: string) {
    this.#regex = compileRegex(pattern, 'g');
    this.#parts = partsOf(substitution, groupCount(pattern));
    // Of the places that an expression can ask for only the boundary of a word is not in an empty text.
    this.#mayMatchNothing = compileRegex(pattern).test('') || pattern.includes('\\b');
  }

  /** `encode`: how the substitution's own text becomes a part of `text`. */
  apply(text: string, encode: (own: string) => string = asItIs): string {
    const parts = this.#parts.map((part) => (typeof part === 'string' ? encode(part) : part));
    return this.#mayMatchNothing ? this.#oneByOne(text, parts) : text.replace(this.#regex, templateOf(parts));
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
      // Behind the end nothing is found.
      if (index === text.length) break;
      regex.lastIndex = index + (text.codePointAt(index)! > 0xffff ? 2 : 1);
    }
    return replaced + text.slice(copied);
  }
}

/** As String.replace() reads it: a group has two digits, so that none of the text behind it is one. */
function templateOf(parts: readonly (string | number)[]): string {
  return parts
    .map((part) => (part === 0 ? '$&' : typeof part === 'number' ? `$0${part}` : part.replaceAll('$', '$$$$')))
    .join('');
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

let loaded: typeof RE2Class | undefined;

/** The addon is loaded at the first expression: configurations without one never pay for it. */
function loadRe2(): typeof RE2Class {
  loaded ??= loadNative('re2') as typeof RE2Class;
  return loaded;
}

function shorten(pattern: string): string {
  return pattern.length > 100 ? `${pattern.slice(0, 100)}…` : pattern;
}
