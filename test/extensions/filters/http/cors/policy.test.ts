// Compiled CORS policies: how levels are merged, which origins are allowed, and the fractions of requests.

import t from 'tap';
import { AllowedOrigins, compilePolicy } from '../../../../../src/extensions/filters/http/cors/policy.js';
import { Runtime } from '../../../../../src/runtime/runtime.js';
import { requestHead } from '../../../../http/routing/heads.js';

const runtime = new Runtime();
/** A random source that hits fractions above `percent`. */
const drawing = (percent: number) => ({ nextUint32: () => (percent / 100) * 2 ** 32 }) as never;

t.test('an empty policy is enabled and allows no origin', async (t) => {
  const { enabled, origins, shadow, ...rest } = compilePolicy([{}], runtime);
  t.ok(enabled.isHit(drawing(99)));
  t.notOk(shadow.isHit(drawing(0)));
  t.notOk(origins.allow(requestHead('GET /', 'origin: http://a')));
  t.same(rest, {
    allowMethods: '',
    allowHeaders: '',
    exposeHeaders: '',
    maxAge: '',
    allowsCredentials: false,
    allowsPrivateNetwork: false,
    forwardsNotMatching: true,
  });
});

t.test('fields come from the most specific level that sets them, fractions from the most specific level', async (t) => {
  const general = {
    allow_methods: 'GET',
    max_age: '1',
    allow_credentials: true,
    allow_private_network_access: true,
    forward_not_matching_preflights: false,
    filter_enabled: { default_value: { numerator: 25 } },
    shadow_enabled: { default_value: { numerator: 75 } },
  };
  const own = compilePolicy([general], runtime);
  t.ok(own.enabled.isHit(drawing(24)));
  t.notOk(own.enabled.isHit(drawing(25)));
  t.ok(own.shadow.isHit(drawing(74)));
  t.notOk(own.shadow.isHit(drawing(75)));
  const specific = { max_age: '2', allow_credentials: false, expose_headers: 'ä' };
  const both = compilePolicy([general, specific], runtime);
  t.match(both, {
    allowMethods: 'GET',
    exposeHeaders: '\u00c3\u00a4',
    maxAge: '2',
    allowsCredentials: false,
    allowsPrivateNetwork: true,
    forwardsNotMatching: false,
  });
  t.ok(both.enabled.isHit(drawing(99)));
  t.notOk(both.shadow.isHit(drawing(0)));
});

t.test('a matcher that matches * allows every origin', async (t) => {
  const allows = (matcher: object, ...lines: string[]) =>
    AllowedOrigins.of([matcher]).allow(requestHead('GET /', ...lines));
  for (const matcher of [{ exact: '*' }, { prefix: '*' }, { suffix: '*' }, { contains: '*', ignore_case: true }]) {
    t.ok(allows(matcher, 'origin: http://a'), JSON.stringify(matcher));
  }
  t.ok(allows({ safe_regex: { regex: '\\*|x' } }, 'origin: http://a'));
  t.ok(allows({ safe_regex: { regex: 'http://[ab]' } }, 'origin: http://a'));
  for (const matcher of [{ exact: '' }, { exact: '**' }, { prefix: 'b' }, { safe_regex: { regex: '\\*\\*' } }]) {
    t.notOk(allows(matcher, 'origin: http://a'), JSON.stringify(matcher));
  }
  t.notOk(allows({ exact: 'a' }, 'origin: a', 'origin: a'), 'two origin fields are joined to one value');
  t.ok(allows({ exact: 'a,b' }, 'origin: a', 'origin: b'));
});

t.test('routes that share a list of origins share the compiled one', async (t) => {
  const list = [{ exact: 'a' }];
  const of = (max_age: string) => compilePolicy([{ allow_origin_string_match: list }, { max_age }], runtime).origins;
  t.equal(of('1'), of('2'));
  t.not(of('1'), compilePolicy([{ allow_origin_string_match: [...list] }], runtime).origins);
});
