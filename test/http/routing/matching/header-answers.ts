// Results of header matchers in Envoy 1.40: for each condition, the values of a field that match.
// test/e2e/http/routing/header-matching.test.ts verifies them with a real Envoy.

import type { HeaderMatcher } from '../../../../src/config/generated/api.js';

/** Values of a header, each on a separate line. */
export const VALUES: readonly (readonly string[])[] = [
  [],
  [''],
  ['one'],
  ['two'],
  ['ONE'],
  ['one', 'two'],
  ['two', 'one'],
  ['two', 'six'],
  ['', ''],
  ['', 'one'],
  ['one', ''],
  ['', 'two'],
  ['one,two'],
  ['one, two'],
  ['one', 'two', 'three'],
  ['one', 'one'],
  ['5'],
  ['5', '50'],
  ['50', '5'],
  ['5', '6'],
  ['50', '60'],
  ['5,6'],
  ['x', '5'],
  ['-1'],
  ['+5'],
  ['05'],
  ['5.0'],
  ['0x5'],
  ['9999999999999999999999'],
  ['', '5'],
  ['\xff'],
  ['on\xe9'],
  [' '],
  ['\t one \t'],
];

/** Strings with a Y for each of VALUES that matches: plain; with invert_match; with treat_missing_header_as_empty; with both. */
export type Answers = readonly [string, string, string, string];

export interface MatchedCondition {
  readonly condition: Omit<HeaderMatcher, 'name'>;
  /** For a header whose lines are matched one by one (x-h). */
  readonly each: Answers;
  /** For a header whose lines are joined to one value (user-agent). */
  readonly joined: Answers;
}

export const CONDITIONS: readonly MatchedCondition[] = [
  {
    condition: { present_match: true },
    each: [
      'nYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYY',
      'Ynnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn',
      'YYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYY',
      'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn',
    ],
    joined: [
      'nYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYY',
      'Ynnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn',
      'YYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYY',
      'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn',
    ],
  },
  {
    condition: { present_match: false },
    each: [
      'Ynnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn',
      'nYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYY',
      'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn',
      'YYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYY',
    ],
    joined: [
      'Ynnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn',
      'nYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYY',
      'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn',
      'YYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYY',
    ],
  },
  {
    condition: {},
    each: [
      'nYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYY',
      'Ynnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn',
      'YYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYY',
      'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn',
    ],
    joined: [
      'nYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYY',
      'Ynnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn',
      'YYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYY',
      'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn',
    ],
  },
  {
    condition: { exact_match: 'one' },
    each: [
      'nnYnnYYnnYYnnnYYnnnnnnnnnnnnnnnnnY',
      'nYnYYnnYYnnYYYnnYYYYYYYYYYYYYYYYYn',
      'nnYnnYYnnYYnnnYYnnnnnnnnnnnnnnnnnY',
      'YYnYYnnYYnnYYYnnYYYYYYYYYYYYYYYYYn',
    ],
    joined: [
      'nnYnnnnnnYYnnnnnnnnnnnnnnnnnnnnnnY',
      'nYnYYYYYYnnYYYYYYYYYYYYYYYYYYYYYYn',
      'nnYnnnnnnYYnnnnnnnnnnnnnnnnnnnnnnY',
      'YYnYYYYYYnnYYYYYYYYYYYYYYYYYYYYYYn',
    ],
  },
  {
    condition: { exact_match: '' },
    each: [
      'nYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYY',
      'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn',
      'YYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYY',
      'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn',
    ],
    joined: [
      'nYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYY',
      'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn',
      'YYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYY',
      'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn',
    ],
  },
  {
    condition: { prefix_match: 'on' },
    each: [
      'nnYnnYYnnYYnYYYYnnnnnnnnnnnnnnnYnY',
      'nYnYYnnYYnnYnnnnYYYYYYYYYYYYYYYnYn',
      'nnYnnYYnnYYnYYYYnnnnnnnnnnnnnnnYnY',
      'YYnYYnnYYnnYnnnnYYYYYYYYYYYYYYYnYn',
    ],
    joined: [
      'nnYnnYnnnYYnYYYYnnnnnnnnnnnnnnnYnY',
      'nYnYYnYYYnnYnnnnYYYYYYYYYYYYYYYnYn',
      'nnYnnYnnnYYnYYYYnnnnnnnnnnnnnnnYnY',
      'YYnYYnYYYnnYnnnnYYYYYYYYYYYYYYYnYn',
    ],
  },
  {
    condition: { suffix_match: 'e' },
    each: [
      'nnYnnYYnnYYnnnYYnnnnnnnnnnnnnnnnnY',
      'nYnYYnnYYnnYYYnnYYYYYYYYYYYYYYYYYn',
      'nnYnnYYnnYYnnnYYnnnnnnnnnnnnnnnnnY',
      'YYnYYnnYYnnYYYnnYYYYYYYYYYYYYYYYYn',
    ],
    joined: [
      'nnYnnnYnnYYnnnYYnnnnnnnnnnnnnnnnnY',
      'nYnYYYnYYnnYYYnnYYYYYYYYYYYYYYYYYn',
      'nnYnnnYnnYYnnnYYnnnnnnnnnnnnnnnnnY',
      'YYnYYYnYYnnYYYnnYYYYYYYYYYYYYYYYYn',
    ],
  },
  {
    condition: { contains_match: 'n' },
    each: [
      'nnYnnYYnnYYnYYYYnnnnnnnnnnnnnnnYnY',
      'nYnYYnnYYnnYnnnnYYYYYYYYYYYYYYYnYn',
      'nnYnnYYnnYYnYYYYnnnnnnnnnnnnnnnYnY',
      'YYnYYnnYYnnYnnnnYYYYYYYYYYYYYYYnYn',
    ],
    joined: [
      'nnYnnYYnnYYnYYYYnnnnnnnnnnnnnnnYnY',
      'nYnYYnnYYnnYnnnnYYYYYYYYYYYYYYYnYn',
      'nnYnnYYnnYYnYYYYnnnnnnnnnnnnnnnYnY',
      'YYnYYnnYYnnYnnnnYYYYYYYYYYYYYYYnYn',
    ],
  },
  {
    condition: { safe_regex_match: { regex: 'o.e' } },
    each: [
      'nnYnnYYnnYYnnnYYnnnnnnnnnnnnnnnnnY',
      'nYnYYnnYYnnYYYnnYYYYYYYYYYYYYYYYYn',
      'nnYnnYYnnYYnnnYYnnnnnnnnnnnnnnnnnY',
      'YYnYYnnYYnnYYYnnYYYYYYYYYYYYYYYYYn',
    ],
    joined: [
      'nnYnnnnnnYYnnnnnnnnnnnnnnnnnnnnnnY',
      'nYnYYYYYYnnYYYYYYYYYYYYYYYYYYYYYYn',
      'nnYnnnnnnYYnnnnnnnnnnnnnnnnnnnnnnY',
      'YYnYYYYYYnnYYYYYYYYYYYYYYYYYYYYYYn',
    ],
  },
  {
    condition: { range_match: { start: '1', end: '10' } },
    each: [
      'nnnnnnnnnnnnnnnnYYYYnnYnYYnnnYnnnn',
      'nYYYYYYYYYYYYYYYnnnnYYnYnnYYYnYYYY',
      'nnnnnnnnnnnnnnnnYYYYnnYnYYnnnYnnnn',
      'YYYYYYYYYYYYYYYYnnnnYYnYnnYYYnYYYY',
    ],
    joined: [
      'nnnnnnnnnnnnnnnnYnnnnnnnYYnnnYnnnn',
      'nYYYYYYYYYYYYYYYnYYYYYYYnnYYYnYYYY',
      'nnnnnnnnnnnnnnnnYnnnnnnnYYnnnYnnnn',
      'YYYYYYYYYYYYYYYYnYYYYYYYnnYYYnYYYY',
    ],
  },
  {
    condition: { range_match: { start: '-5', end: '1' } },
    each: [
      'nnnnnnnnnnnnnnnnnnnnnnnYnnnnnnnnnn',
      'nYYYYYYYYYYYYYYYYYYYYYYnYYYYYYYYYY',
      'nnnnnnnnnnnnnnnnnnnnnnnYnnnnnnnnnn',
      'YYYYYYYYYYYYYYYYYYYYYYYnYYYYYYYYYY',
    ],
    joined: [
      'nnnnnnnnnnnnnnnnnnnnnnnYnnnnnnnnnn',
      'nYYYYYYYYYYYYYYYYYYYYYYnYYYYYYYYYY',
      'nnnnnnnnnnnnnnnnnnnnnnnYnnnnnnnnnn',
      'YYYYYYYYYYYYYYYYYYYYYYYnYYYYYYYYYY',
    ],
  },
  {
    condition: { string_match: { exact: 'one' } },
    each: [
      'nnYnnYYnnYYnnnYYnnnnnnnnnnnnnnnnnY',
      'nYnYYnnYYnnYYYnnYYYYYYYYYYYYYYYYYn',
      'nnYnnYYnnYYnnnYYnnnnnnnnnnnnnnnnnY',
      'YYnYYnnYYnnYYYnnYYYYYYYYYYYYYYYYYn',
    ],
    joined: [
      'nnYnnnnnnYYnnnnnnnnnnnnnnnnnnnnnnY',
      'nYnYYYYYYnnYYYYYYYYYYYYYYYYYYYYYYn',
      'nnYnnnnnnYYnnnnnnnnnnnnnnnnnnnnnnY',
      'YYnYYYYYYnnYYYYYYYYYYYYYYYYYYYYYYn',
    ],
  },
  {
    condition: { string_match: { exact: '' } },
    each: [
      'nYnnnnnnYYYYnnnnnnnnnnnnnnnnnYnnYn',
      'nnYYYYYYnnnnYYYYYYYYYYYYYYYYYnYYnY',
      'YYnnnnnnYYYYnnnnnnnnnnnnnnnnnYnnYn',
      'nnYYYYYYnnnnYYYYYYYYYYYYYYYYYnYYnY',
    ],
    joined: [
      'nYnnnnnnYnnnnnnnnnnnnnnnnnnnnnnnYn',
      'nnYYYYYYnYYYYYYYYYYYYYYYYYYYYYYYnY',
      'YYnnnnnnYnnnnnnnnnnnnnnnnnnnnnnnYn',
      'nnYYYYYYnYYYYYYYYYYYYYYYYYYYYYYYnY',
    ],
  },
  {
    condition: { string_match: { exact: 'one,two' } },
    each: [
      'nnnnnnnnnnnnYnnnnnnnnnnnnnnnnnnnnn',
      'nYYYYYYYYYYYnYYYYYYYYYYYYYYYYYYYYY',
      'nnnnnnnnnnnnYnnnnnnnnnnnnnnnnnnnnn',
      'YYYYYYYYYYYYnYYYYYYYYYYYYYYYYYYYYY',
    ],
    joined: [
      'nnnnnYnnnnnnYnnnnnnnnnnnnnnnnnnnnn',
      'nYYYYnYYYYYYnYYYYYYYYYYYYYYYYYYYYY',
      'nnnnnYnnnnnnYnnnnnnnnnnnnnnnnnnnnn',
      'YYYYYnYYYYYYnYYYYYYYYYYYYYYYYYYYYY',
    ],
  },
  {
    condition: { string_match: { exact: 'oNe', ignore_case: true } },
    each: [
      'nnYnYYYnnYYnnnYYnnnnnnnnnnnnnnnnnY',
      'nYnYnnnYYnnYYYnnYYYYYYYYYYYYYYYYYn',
      'nnYnYYYnnYYnnnYYnnnnnnnnnnnnnnnnnY',
      'YYnYnnnYYnnYYYnnYYYYYYYYYYYYYYYYYn',
    ],
    joined: [
      'nnYnYnnnnYYnnnnnnnnnnnnnnnnnnnnnnY',
      'nYnYnYYYYnnYYYYYYYYYYYYYYYYYYYYYYn',
      'nnYnYnnnnYYnnnnnnnnnnnnnnnnnnnnnnY',
      'YYnYnYYYYnnYYYYYYYYYYYYYYYYYYYYYYn',
    ],
  },
  {
    condition: { string_match: { prefix: 'on' } },
    each: [
      'nnYnnYYnnYYnYYYYnnnnnnnnnnnnnnnYnY',
      'nYnYYnnYYnnYnnnnYYYYYYYYYYYYYYYnYn',
      'nnYnnYYnnYYnYYYYnnnnnnnnnnnnnnnYnY',
      'YYnYYnnYYnnYnnnnYYYYYYYYYYYYYYYnYn',
    ],
    joined: [
      'nnYnnYnnnYYnYYYYnnnnnnnnnnnnnnnYnY',
      'nYnYYnYYYnnYnnnnYYYYYYYYYYYYYYYnYn',
      'nnYnnYnnnYYnYYYYnnnnnnnnnnnnnnnYnY',
      'YYnYYnYYYnnYnnnnYYYYYYYYYYYYYYYnYn',
    ],
  },
  {
    condition: { string_match: { suffix: 'o' } },
    each: [
      'nnnYnYYYnnnYYYYnnnnnnnnnnnnnnnnnnn',
      'nYYnYnnnYYYnnnnYYYYYYYYYYYYYYYYYYY',
      'nnnYnYYYnnnYYYYnnnnnnnnnnnnnnnnnnn',
      'YYYnYnnnYYYnnnnYYYYYYYYYYYYYYYYYYY',
    ],
    joined: [
      'nnnYnYnnnnnYYYnnnnnnnnnnnnnnnnnnnn',
      'nYYnYnYYYYYnnnYYYYYYYYYYYYYYYYYYYY',
      'nnnYnYnnnnnYYYnnnnnnnnnnnnnnnnnnnn',
      'YYYnYnYYYYYnnnYYYYYYYYYYYYYYYYYYYY',
    ],
  },
  {
    condition: { string_match: { contains: 'n' } },
    each: [
      'nnYnnYYnnYYnYYYYnnnnnnnnnnnnnnnYnY',
      'nYnYYnnYYnnYnnnnYYYYYYYYYYYYYYYnYn',
      'nnYnnYYnnYYnYYYYnnnnnnnnnnnnnnnYnY',
      'YYnYYnnYYnnYnnnnYYYYYYYYYYYYYYYnYn',
    ],
    joined: [
      'nnYnnYYnnYYnYYYYnnnnnnnnnnnnnnnYnY',
      'nYnYYnnYYnnYnnnnYYYYYYYYYYYYYYYnYn',
      'nnYnnYYnnYYnYYYYnnnnnnnnnnnnnnnYnY',
      'YYnYYnnYYnnYnnnnYYYYYYYYYYYYYYYnYn',
    ],
  },
  {
    condition: { string_match: { contains: ',' } },
    each: [
      'nnnnnnnnnnnnYYnnnnnnnYnnnnnnnnnnnn',
      'nYYYYYYYYYYYnnYYYYYYYnYYYYYYYYYYYY',
      'nnnnnnnnnnnnYYnnnnnnnYnnnnnnnnnnnn',
      'YYYYYYYYYYYYnnYYYYYYYnYYYYYYYYYYYY',
    ],
    joined: [
      'nnnnnYYYnnnnYYYYnYYYYYYnnnnnnnnnnn',
      'nYYYYnnnYYYYnnnnYnnnnnnYYYYYYYYYYY',
      'nnnnnYYYnnnnYYYYnYYYYYYnnnnnnnnnnn',
      'YYYYYnnnYYYYnnnnYnnnnnnYYYYYYYYYYY',
    ],
  },
  {
    condition: { string_match: { contains: 'NE', ignore_case: true } },
    each: [
      'nnYnYYYnnYYnYYYYnnnnnnnnnnnnnnnnnY',
      'nYnYnnnYYnnYnnnnYYYYYYYYYYYYYYYYYn',
      'nnYnYYYnnYYnYYYYnnnnnnnnnnnnnnnnnY',
      'YYnYnnnYYnnYnnnnYYYYYYYYYYYYYYYYYn',
    ],
    joined: [
      'nnYnYYYnnYYnYYYYnnnnnnnnnnnnnnnnnY',
      'nYnYnnnYYnnYnnnnYYYYYYYYYYYYYYYYYn',
      'nnYnYYYnnYYnYYYYnnnnnnnnnnnnnnnnnY',
      'YYnYnnnYYnnYnnnnYYYYYYYYYYYYYYYYYn',
    ],
  },
  {
    condition: { string_match: { safe_regex: { regex: 'o.e|two' } } },
    each: [
      'nnYYnYYYnYYYnnYYnnnnnnnnnnnnnnnnnY',
      'nYnnYnnnYnnnYYnnYYYYYYYYYYYYYYYYYn',
      'nnYYnYYYnYYYnnYYnnnnnnnnnnnnnnnnnY',
      'YYnnYnnnYnnnYYnnYYYYYYYYYYYYYYYYYn',
    ],
    joined: [
      'nnYYnnnnnYYYnnnnnnnnnnnnnnnnnnnnnY',
      'nYnnYYYYYnnnYYYYYYYYYYYYYYYYYYYYYn',
      'nnYYnnnnnYYYnnnnnnnnnnnnnnnnnnnnnY',
      'YYnnYYYYYnnnYYYYYYYYYYYYYYYYYYYYYn',
    ],
  },
  {
    condition: { string_match: { safe_regex: { regex: '.*' } } },
    each: [
      'nYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYY',
      'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn',
      'YYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYY',
      'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn',
    ],
    joined: [
      'nYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYY',
      'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn',
      'YYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYY',
      'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn',
    ],
  },
  {
    condition: { string_match: { safe_regex: { regex: 'x*' } } },
    each: [
      'nYnnnnnnYYYYnnnnnnnnnnYnnnnnnYnnYn',
      'nnYYYYYYnnnnYYYYYYYYYYnYYYYYYnYYnY',
      'YYnnnnnnYYYYnnnnnnnnnnYnnnnnnYnnYn',
      'nnYYYYYYnnnnYYYYYYYYYYnYYYYYYnYYnY',
    ],
    joined: [
      'nYnnnnnnYnnnnnnnnnnnnnnnnnnnnnnnYn',
      'nnYYYYYYnYYYYYYYYYYYYYYYYYYYYYYYnY',
      'YYnnnnnnYnnnnnnnnnnnnnnnnnnnnnnnYn',
      'nnYYYYYYnYYYYYYYYYYYYYYYYYYYYYYYnY',
    ],
  },
  {
    condition: { string_match: { safe_regex: { regex: 'one,two' } } },
    each: [
      'nnnnnnnnnnnnYnnnnnnnnnnnnnnnnnnnnn',
      'nYYYYYYYYYYYnYYYYYYYYYYYYYYYYYYYYY',
      'nnnnnnnnnnnnYnnnnnnnnnnnnnnnnnnnnn',
      'YYYYYYYYYYYYnYYYYYYYYYYYYYYYYYYYYY',
    ],
    joined: [
      'nnnnnYnnnnnnYnnnnnnnnnnnnnnnnnnnnn',
      'nYYYYnYYYYYYnYYYYYYYYYYYYYYYYYYYYY',
      'nnnnnYnnnnnnYnnnnnnnnnnnnnnnnnnnnn',
      'YYYYYnYYYYYYnYYYYYYYYYYYYYYYYYYYYY',
    ],
  },
];

/** Returns the matchers of a row of Answers. */
export function variants(name: string, { condition }: MatchedCondition): HeaderMatcher[] {
  return [
    { name, ...condition },
    { name, ...condition, invert_match: true },
    { name, ...condition, treat_missing_header_as_empty: true },
    { name, ...condition, invert_match: true, treat_missing_header_as_empty: true },
  ];
}
