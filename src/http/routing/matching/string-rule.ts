// envoy.type.matcher.v3.StringMatcher, compiled to match bytes. Only regular expressions need a string.

import type { TextMemory } from '../../../access-log/stream/header-view.js';
import { BatonError } from '../../../common/errors/errors.js';
import { FOLD } from '../../../common/text/header-names.js';
import { lowerAscii } from '../../../common/text/lower-ascii.js';
import { compileFullMatch, compileRegex, type Regex, Replacement } from '../../../common/text/regex.js';
import type { RegexMatchAndSubstitute, StringMatcher } from '../../../config/generated/api.js';
import { regexText } from './regex-text.js';

export const enum StringKind {
  Exact = 0,
  Prefix = 1,
  Suffix = 2,
  Contains = 3,
  Regex = 4,
}

export class StringRule {
  readonly #kind: StringKind;
  readonly #bytes: Uint8Array;
  readonly #ignoresCase: boolean;
  readonly #regex: Regex | undefined;

  /** `pattern` is the text to find, or the regular expression that must match the whole value. */
  constructor(kind: StringKind, pattern: string, ignoresCase = false) {
    this.#kind = kind;
    this.#ignoresCase = ignoresCase;
    this.#regex = kind === StringKind.Regex ? compileFullMatch(pattern) : undefined;
    this.#bytes = encoder.encode(ignoresCase ? lowerAscii(pattern) : pattern);
  }

  /** Returns whether a text of `length` bytes may match. */
  canHaveLength(length: number): boolean {
    if (this.#kind === StringKind.Regex) return true;
    return this.#kind === StringKind.Exact ? length === this.#bytes.length : length >= this.#bytes.length;
  }

  matches(memory: TextMemory, start: number, end: number): boolean {
    if (this.#kind === StringKind.Regex) return this.#regex!.test(regexText(memory, start, end));
    return this.#matchesBytes(memory.bytes, start, end);
  }

  #matchesBytes(bytes: Uint8Array, start: number, end: number): boolean {
    const length = this.#bytes.length;
    if (!this.canHaveLength(end - start)) return false;
    switch (this.#kind) {
      case StringKind.Exact:
        return this.#isAt(bytes, start);
      case StringKind.Prefix:
        return this.#isAt(bytes, start);
      case StringKind.Suffix:
        return this.#isAt(bytes, end - length);
      default:
        for (let at = start; at <= end - length; at++) if (this.#isAt(bytes, at)) return true;
        return false;
    }
  }

  /** Like matches(), for a text that is not in memory. */
  matchesText(text: string): boolean {
    if (this.#kind === StringKind.Regex) return this.#regex!.test(text);
    const bytes = encoder.encode(text);
    return this.#matchesBytes(bytes, 0, bytes.length);
  }

  #isAt(bytes: Uint8Array, start: number): boolean {
    const wanted = this.#bytes;
    const length = wanted.length;
    if (this.#ignoresCase) {
      for (let i = 0; i < length; i++) if (FOLD[bytes[start + i]!] !== wanted[i]) return false;
    } else {
      for (let i = 0; i < length; i++) if (bytes[start + i] !== wanted[i]) return false;
    }
    return true;
  }
}

/**
 * Compiles a StringMatcher.
 * @param where its path in the configuration
 * @throws BatonError CONFIG_INVALID or REGEX_INVALID
 */
export function compileStringMatcher(config: StringMatcher, where: string): StringRule {
  const ignoresCase = config.ignore_case ?? false;
  if (config.exact !== undefined) return new StringRule(StringKind.Exact, config.exact, ignoresCase);
  if (config.prefix !== undefined) return new StringRule(StringKind.Prefix, config.prefix, ignoresCase);
  if (config.suffix !== undefined) return new StringRule(StringKind.Suffix, config.suffix, ignoresCase);
  if (config.contains !== undefined) return new StringRule(StringKind.Contains, config.contains, ignoresCase);
  if (config.safe_regex !== undefined) return regexRule(config.safe_regex.regex ?? '', `${where}.safe_regex.regex`);
  throw new BatonError('CONFIG_INVALID', 'a string matcher needs exact, prefix, suffix, contains or safe_regex', {
    where,
  });
}

/** Returns a rule for a regular expression that must match the whole value. Errors carry `where`. */
export function regexRule(pattern: string, where: string): StringRule {
  return located(where, () => new StringRule(StringKind.Regex, pattern));
}

/** Compiles a regular expression and its substitution. Errors carry their path in the configuration. */
export function replacementOf({ pattern, substitution = '' }: RegexMatchAndSubstitute, where: string): Replacement {
  const regex = pattern?.regex ?? '';
  located(`${where}.pattern.regex`, () => compileRegex(regex));
  return located(`${where}.substitution`, () => new Replacement(regex, substitution));
}

/** Runs `compile` and adds `where` to its BatonErrors that have no path in the configuration. */
export function located<T>(where: string, compile: () => T): T {
  try {
    return compile();
  } catch (error) {
    if (error instanceof BatonError && error.where === undefined) {
      throw new BatonError(error.code, error.message, { where, remedy: error.remedy, cause: error });
    }
    throw error;
  }
}

const encoder = new TextEncoder();
