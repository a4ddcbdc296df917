// Expressions that find tags. Envoy parses these as ECMAScript, unlike all others, so they may contain lookaheads.

import { compileRegex, type Regex } from '../../common/text/regex.js';

/**
 * Compiles an expression with RE2 if possible. Expressions with lookaheads use the JavaScript engine, whose worst-case time
 * only the author of the configuration can cause.
 * @throws BatonError REGEX_INVALID
 */
export function compileTagRegex(pattern: string, flags = ''): Regex {
  try {
    return compileRegex(pattern, flags);
  } catch (error) {
    if (!LOOKAHEAD.test(pattern) || pattern.length > MAX_PATTERN) throw error;
    try {
      return new RegExp(withoutNamedClasses(pattern), flags);
    } catch {
      throw error;
    }
  }
}

/** Returns the number of capture groups of a valid expression. */
export function tagGroupCount(pattern: string): number {
  // The empty alternative matches anything, and a match has an entry for each group.
  return compileTagRegex(`|${pattern}`).exec('')!.length - 1;
}

const LOOKAHEAD = /\(\?[=!]/;
const MAX_PATTERN = 4096;

const CLASSES: { readonly [name: string]: string } = {
  alnum: 'a-zA-Z0-9',
  alpha: 'a-zA-Z',
  digit: '0-9',
  lower: 'a-z',
  space: '\\s',
  upper: 'A-Z',
  xdigit: '0-9a-fA-F',
};

function withoutNamedClasses(pattern: string): string {
  return pattern.replace(/\[:(\w+):\]/g, (_written, name: string) => {
    const members = CLASSES[name];
    if (members === undefined) throw new Error(`unknown class '${name}'`);
    return members;
  });
}
