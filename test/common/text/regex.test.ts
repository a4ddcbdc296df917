// Users' regular expressions: RE2's syntax, partial and full matches, and Envoy's substitutions.

import t from 'tap';
import {
  compileFullMatch,
  compileRegex,
  compileRequestedFullMatch,
  compileRequestedRegex,
  missingGroup,
  Replacement,
} from '../../../src/common/text/regex.js';

const replace = (pattern: string, substitution: string, text: string): string =>
  new Replacement(pattern, substitution).apply(text);

t.test('an expression matches anywhere, or the whole text', async (t) => {
  t.ok(compileRegex('b+').test('abbc'));
  t.notOk(compileFullMatch('b+').test('abbc'));
  t.ok(compileFullMatch('a|b').test('b'));
  t.notOk(compileFullMatch('a|b').test('ab'), 'alternatives do not escape the anchors');
});

t.test('an expression that takes backtracking engines exponential time takes linear time', async (t) => {
  t.notOk(compileFullMatch('(a+)+').test(`${'a'.repeat(100_000)}b`));
});

t.test('an expression that RE2 does not support is refused, with its text in the message', async (t) => {
  for (const pattern of ['(', '(?=a)', '\\1', 'a)|(b']) {
    t.throws(() => compileFullMatch(pattern), {
      code: 'REGEX_INVALID',
      message: `invalid regular expression '${pattern}'`,
    });
  }
});

t.test('an expression that is too long or too costly is refused before RE2 compiles it', async (t) => {
  const refused = (pattern: string, message: RegExp, isRequested = false) => {
    const compile = isRequested ? compileRequestedRegex : compileRegex;
    t.throws(() => compile(pattern), { code: 'REGEX_INVALID', message, isTooLarge: true });
    t.throws(() => (isRequested ? compileRequestedFullMatch : compileFullMatch)(pattern), { message });
  };
  refused('a'.repeat(100_000), /^a regular expression of 100000 characters is too long: at most 32768$/);
  refused('.*'.repeat(16_000), /^a regular expression that makes about \d+ instructions is too costly: at most 65536$/);
  refused('[\\pL\\pN]{300}', /too costly/);
  refused('((a{100}){100}){100}', /too costly/);
  compileRegex('('.repeat(9000) + ')'.repeat(9000));
  refused('('.repeat(9000) + ')'.repeat(9000), /18000 characters is too long: at most 4096/, true);
  refused('('.repeat(2000) + ')'.repeat(2000), /too costly: at most 4096/, true);
  refused('.*'.repeat(1000), /too costly/, true);
  t.ok(compileRequestedRegex(Array.from({ length: 500 }, (_, i) => `s${i}`).join('|')).test('s499'));
});

t.test('substitutions name groups by a backslash, and a dollar is literal', async (t) => {
  const pattern = '^/service/([^/]+)(/.*)$';
  t.equal(replace(pattern, '\\2/instance/\\1', '/service/foo/v1/api'), '/v1/api/instance/foo');
  t.equal(replace(pattern, '$1 \\0 \\\\', '/service/foo/x'), '$1 /service/foo/x \\');
  t.equal(replace('(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)', '\\10', 'abcdefghij'), 'a0', 'a group has one digit');
});

t.test('a substitution that names a missing group replaces nothing, as in RE2', async (t) => {
  t.equal(replace('a(b)', '\\9x', 'abab'), 'abab');
  t.equal(missingGroup('a(b)', '\\1\\9x'), '\\9');
  t.equal(missingGroup('(?:a)[(]\\(\\Q(b)', '\\1'), '\\1');
  t.equal(missingGroup('a(b)', '\\0\\1'), undefined);
  t.equal(new Replacement('a', '\\\\9').apply('a'), '\\9', 'an escaped backslash names no group');
  t.equal(new Replacement('(?P<name>a)|(b)', '<\\2>').apply('ab'), '<><b>', 'a group without a match is empty');
});

t.test('a malformed substitution is refused', async (t) => {
  for (const substitution of ['\\x', 'a\\']) {
    t.throws(() => new Replacement('a', substitution), {
      code: 'REGEX_INVALID',
      message: /a backslash must be followed/,
    });
  }
});

t.test('an empty match directly after another match is ignored, as in RE2', async (t) => {
  const cases: [string, string, string, string][] = [
    ['.*', '/x', '/abc', '/x'],
    ['(.*)', '/p\\1', '/abc', '/p/abc'],
    ['(.*)', '<\\1>', '', '<>'],
    ['b*', '-', '/abbc', '-/-a-c-'],
    ['x*', '-', 'aé', '-a-é-'],
    ['[^/]*$', 'end', '/a/b', '/a/end'],
  ];
  for (const [pattern, substitution, text, expected] of cases) {
    t.equal(new Replacement(pattern, substitution).apply(text), expected, `${pattern} in '${text}'`);
  }
});

// Takes about a second; counting the characters before each match would take minutes.
t.test('many matches take linear time, with and without empty matches', { timeout: 60_000 }, async (t) => {
  const text = 'aé'.repeat(200_000);
  t.ok(new Replacement('a', '$1b').apply(text) === '$1bé'.repeat(200_000));
  t.ok(new Replacement('(a)(x?)', '\\2\\11\\0').apply(text) === 'a1aé'.repeat(200_000));
  t.ok(new Replacement('a*', '-').apply(text) === `${'-é'.repeat(200_000)}-`);
  t.ok(new Replacement('\\b', '|').apply('ab 😀c') === '|ab| 😀|c|');
});
