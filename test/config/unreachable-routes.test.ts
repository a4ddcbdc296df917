// A route that an earlier one hides causes a warning, and no other route does.

import fc from 'fast-check';
import t from 'tap';
import { unreachableRoutes } from '../../src/config/checks/unreachable-routes.js';
import type { RouteMatch } from '../../src/config/generated/api.js';
import { PathRule } from '../../src/http/routing/matching/path-rule.js';
import { requestHead } from '../http/routing/heads.js';

/** Prefixes of this length take no other route: see MAX_PREFIX. */
const LONG = `/${'a'.repeat(5000)}`;

/** Returns the pairs of hidden and hiding route. */
function hidden(...matches: RouteMatch[]): [number, number][] {
  return Array.from(unreachableRoutes(matches.map((match) => ({ match }))), ({ index, taker }) => [index, taker]);
}

t.test('a route after one that takes its requests', async (t) => {
  const header = { headers: [{ name: 'x', present_match: true }] };
  const cases: [boolean, RouteMatch, RouteMatch][] = [
    [true, { prefix: '/' }, { prefix: '/a' }],
    [true, { prefix: '/' }, { safe_regex: { regex: '/a.*' } }],
    [true, { prefix: '' }, { path: '/a' }],
    [true, { prefix: '/a' }, { path: '/ab', ...header }],
    [true, { prefix: '/A', case_sensitive: false }, { prefix: '/ab' }],
    [true, { prefix: '/a' }, { path_separated_prefix: '/ab' }],
    [true, { path_separated_prefix: '/a' }, { path: '/a' }],
    [true, { path_separated_prefix: '/a' }, { prefix: '/a/b' }],
    [true, { path_separated_prefix: '/a' }, { path_separated_prefix: '/a/b' }],
    [true, { path: '/a' }, { path: '/a' }],
    [true, { safe_regex: { regex: 'x' } }, { safe_regex: { regex: 'x' }, ...header }],
    [true, { prefix: '/1' }, { prefix: '/12', case_sensitive: false }],
    [true, { prefix: '/' }, { prefix: LONG }],
    [false, { prefix: LONG }, { prefix: `${LONG}b` }],
    [false, { prefix: '/', ...header }, { prefix: '/a' }],
    [false, { prefix: '/a' }, { prefix: '/' }],
    [false, { prefix: '/a' }, { prefix: '/ab', case_sensitive: false }],
    [false, { path_separated_prefix: '/a' }, { prefix: '/a' }],
    [false, { path_separated_prefix: '/a' }, { path: '/ab' }],
    [false, { path: '/a' }, { path_separated_prefix: '/a' }],
    [false, { prefix: '/' }, { connect_matcher: {} }],
    [false, { prefix: '/?' }, { prefix: '/?a' }],
    [false, { prefix: '/', runtime_fraction: {} }, { prefix: '/a' }],
  ];
  for (const [isHidden, first, second] of cases) {
    t.strictSame(hidden(first, second), isHidden ? [[1, 0]] : [], JSON.stringify([first, second]));
  }
  t.strictSame(hidden({ path: '/x' }, { prefix: '/' }, { path: '/x' }, { prefix: '/y' }), [
    [2, 1],
    [3, 1],
  ]);
});

t.test('whatever a hidden route matches, an earlier one does', async (t) => {
  const literal = fc.constantFrom('', '/', '/a', '/A', '/a/', '/a/b', '/ab', '/1', '/a?b');
  const match = fc.oneof(
    fc.record({ prefix: literal, case_sensitive: fc.boolean() }),
    fc.record({ path: literal, case_sensitive: fc.boolean() }),
    fc.record({ path_separated_prefix: fc.constantFrom('/a', '/A', '/a/b', '/1'), case_sensitive: fc.boolean() }),
  );
  const paths = ['/', '/a', '/A', '/a/', '/a/b', '/a/B/c', '/ab', '/aB', '/1', '/12', '/1/2', '/b'];
  const heads = paths.map((path) => requestHead(`GET ${path}`));
  const run = fc.property(fc.array(match, { maxLength: 5 }), (matches) => {
    const rules = matches.map((each) => new PathRule(each, ''));
    const found = hidden(...matches);
    return heads.every((head) => {
      const first = rules.findIndex((rule) => rule.matches(head.memory, head.pathStart, head.pathEnd));
      return found.every(([index]) => index !== first);
    });
  });
  t.doesNotThrow(() => fc.assert(run, { numRuns: 5000 }));
});
