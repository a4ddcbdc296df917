// Functions of strings that are always available, and size().

import { compileRequestedRegex, type Regex, RegexError } from '../../common/text/regex.js';
import { regexSize } from '../../common/text/regex-size.js';
import { CelMap, type CelValue, textOf } from '../values.js';
import { type CelFunction, oneOf, type Result, twoOf } from './function-table.js';

/** Maximum size of RE2 programs in expressions, as in Envoy. */
const MAX_PROGRAM = 100;
/** Instructions that find where a pattern without ^ begins. */
const SEARCH_PROGRAM = 4;
/** Characters of a pattern; a longer one has a larger program. */
const MAX_PATTERN = 2048;

export const TEXTS: readonly (readonly [string, CelFunction])[] = [
  ['size', oneOf('both', size)],
  ['contains', ofStrings((a, b) => a.includes(b))],
  ['startsWith', ofStrings((a, b) => a.startsWith(b))],
  ['endsWith', ofStrings((a, b) => a.endsWith(b))],
  ['matches', ofStrings(matches)],
];

function ofStrings(apply: (a: string, b: string) => Result): CelFunction {
  return twoOf('both', (a, b) => (typeof a === 'string' && typeof b === 'string' ? apply(a, b) : undefined));
}

function size(a: CelValue): Result {
  if (typeof a === 'string') return BigInt(characters(a));
  if (Array.isArray(a) || a instanceof Uint8Array) return BigInt(a.length);
  return a instanceof CelMap ? BigInt(a.size) : undefined;
}

/** The continuation bytes of UTF-8 do not count. */
function characters(bytes: string): number {
  let count = 0;
  for (let i = 0; i < bytes.length; i++) if ((bytes.charCodeAt(i) & 0xc0) !== 0x80) count++;
  return count;
}

/** A pattern that is not constant is compiled for each evaluation; its size is bounded. */
function matches(text: string, pattern: string): Result {
  try {
    return compilePattern(pattern).test(textOf(text));
  } catch (error) {
    if (error instanceof RegexError) return undefined;
    throw error;
  }
}

/** Compiles the pattern of matches(). Throws a RegexError if it is invalid or its program too large. */
export function compilePattern(bytes: string): Regex {
  const pattern = textOf(bytes);
  if (pattern.length > MAX_PATTERN) throw new RegexError('regular expression exceeds max allowed size');
  const search = pattern.startsWith('^') ? 0 : SEARCH_PROGRAM;
  if (regexSize(pattern).program + search > MAX_PROGRAM)
    throw new RegexError('regular expression exceeds max allowed size');
  return compileRequestedRegex(pattern);
}
