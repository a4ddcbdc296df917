// Users' regular expressions: RE2's, whole or part, with Envoy's way to write a substitution.

import t from 'tap';
import { compileFullMatch, compileRegex, replacementOf } from '../../src/common/regex.js';

t.test('an expression may match anywhere, or must match all', async (t) => {
  t.ok(compileRegex('b+').test('abbc'));
  t.notOk(compileFullMatch('b+').test('abbc'));
  t.ok(compileFullMatch('a|b').test('b'));
  t.notOk(compileFullMatch('a|b').test('ab'), 'alternatives do not escape the anchors');
});

t.test('what takes others exponential time takes linear time', async (t) => {
  t.notOk(compileFullMatch('(a+)+').test(`${'a'.repeat(100_000)}b`));
});

t.test('an expression that RE2 does not know is refused, with its text', async (t) => {
  for (const pattern of ['(', '(?=a)', '\\1', 'a)|(b']) {
    t.throws(() => compileFullMatch(pattern), {
      code: 'REGEX_INVALID',
      message: `invalid regular expression '${pattern}'`,
    });
  }
  t.throws(() => compileRegex('a'.repeat(100_000)), { code: 'REGEX_INVALID' });
});

t.test("Envoy's substitutions name groups by backslash, and a dollar is a dollar", async (t) => {
  const regex = compileRegex('^/service/([^/]+)(/.*)$');
  t.equal('/service/foo/v1/api'.replace(regex, replacementOf('\\2/instance/\\1')), '/v1/api/instance/foo');
  t.equal('/service/foo/x'.replace(regex, replacementOf('$1 \\0 \\\\')), '$1 /service/foo/x \\');
});
