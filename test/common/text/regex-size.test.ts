import t from 'tap';
import { regexSize } from '../../../src/common/text/regex-size.js';
import { ENVOY_PROGRAM_SIZES } from './envoy-program-sizes.js';

t.test("the estimated size is at most Envoy's, and near it for common expressions", async (t) => {
  for (const [pattern, size] of ENVOY_PROGRAM_SIZES) {
    const { program } = regexSize(pattern);
    t.ok(program <= size, `${pattern}: ${program} <= ${size}`);
  }
  for (const [pattern, least] of [
    ['^/users/([0-9]+)/orders/([0-9]+)(?:/.*)?$', 24],
    ['[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}', 68],
    ['a{1000}', 1000],
    ['(a|b){1000}', 3000],
    ['.{1000}', 2000],
    ['(?:(?:a{10}){10}){10}', 1000],
    ['[a-zA-Z0-9]{1,63}(\\.[a-zA-Z0-9]{1,63})*', 250],
    [`${'('.repeat(9000)}a${')'.repeat(9000)}`, 18_001],
  ] as const) {
    t.ok(regexSize(pattern).program >= least, `${pattern.slice(0, 60)}: ${regexSize(pattern).program} >= ${least}`);
  }
});

t.test('expressions without a known size and invalid ones are measured in linear time', async (t) => {
  t.equal(regexSize('\\p{Greek}').program, 0);
  t.equal(regexSize('\\x{263a}').program, 0);
  t.equal(regexSize('[^\\x00-\\xff]a').program, 0);
  for (const piece of [
    '(',
    ')',
    '[',
    '[a',
    '(?<',
    '(?P<a',
    '\\Q',
    '\\x{',
    '\\p{',
    '{',
    'a{',
    '*',
    '|',
    '(|',
    '\\',
    '[[:',
    '[^',
    'a{999',
    '(?',
  ]) {
    const { cost } = regexSize(piece.repeat(10_000));
    t.ok(cost >= 0 && cost < Infinity, piece);
  }
  t.ok(regexSize('\\pL{300}').cost > 100_000, 'takes RE2 long');
  t.ok(regexSize('.*'.repeat(16_000)).cost > 100_000);
  t.ok(regexSize('a{1000}'.repeat(1000)).cost > 1_000_000);
});
