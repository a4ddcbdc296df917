// The `filter` of an answer about stats: an expression that may match anywhere in a name, tried on each of very many.

import { compileRequestedRegex } from '../../common/text/regex.js';

/**
 * Whether a name matches. Throws BatonError REGEX_INVALID.
 *
 * RE2 takes about a microsecond a name, most of it to hand the name over. Expressions that are plain names with dots and
 * anchors therefore try first whether the name has the longest word of the expression.
 */
export function namePattern(pattern: string): (name: string) => boolean {
  const regex = compileRequestedRegex(pattern);
  const word = longestWord(pattern);
  if (word === '') return (name) => regex.test(name);
  return (name) => name.includes(word) && regex.test(name);
}

/** Of an expression of words, dots (escaped or not) and anchors only: every match has all its words. */
function longestWord(pattern: string): string {
  if (!/^\^?(?:\w|\\?\.)+\$?$/.test(pattern)) return '';
  return pattern.split(/[^\w]+/).reduce((longest, word) => (word.length > longest.length ? word : longest), '');
}
