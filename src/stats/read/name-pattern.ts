// The `filter` parameter of /stats: an expression that may match anywhere in a name, applied to a large number of names.

import { compileRequestedRegex } from '../../common/text/regex.js';

/**
 * Returns a predicate for names.
 *
 * RE2 takes about a microsecond per name, most of it to pass the name. Expressions of words, dots and anchors therefore
 * first check whether the name contains the longest word of the expression.
 * @throws BatonError REGEX_INVALID
 */
export function namePattern(pattern: string): (name: string) => boolean {
  const regex = compileRequestedRegex(pattern);
  const word = longestWord(pattern);
  if (word === '') return (name) => regex.test(name);
  return (name) => name.includes(word) && regex.test(name);
}

/**
 * Returns the longest word of an expression that consists of words, dots (escaped or not) and anchors, which every match
 * contains; else ''.
 */
function longestWord(pattern: string): string {
  if (!/^\^?(?:\w|\\?\.)+\$?$/.test(pattern)) return '';
  return pattern.split(/[^\w]+/).reduce((longest, word) => (word.length > longest.length ? word : longest), '');
}
