// Expressions that find tags. Envoy reads them as ECMAScript's, unlike all others: they may look ahead.

import { compileRegex, type Regex } from '../../common/text/regex.js';

/**
 * RE2 serves what it understands; what looks ahead goes to the engine of the language, whose time only who configures can stretch.
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

/** How many capture groups an expression has that compiles. */
export function tagGroupCount(pattern: string): number {
  // The alternative in front matches anything, and a match has a place for each group.
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
