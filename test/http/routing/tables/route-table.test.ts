// A request gets the same route as in Envoy.

import fc from 'fast-check';
import t from 'tap';
import { BatonError } from '../../../../src/common/errors/errors.js';
import { byteText } from '../../../../src/common/text/byte-text.js';
import type { Route as RouteConfig, RouteConfiguration, RouteMatch } from '../../../../src/config/generated/api.js';
import { RouteKind } from '../../../../src/http/routing/actions/route.js';
import { buildRouteTable, type RouteTable } from '../../../../src/http/routing/tables/route-table.js';
import { anonymous, authenticated } from '../../../io/tls/security.js';
import { requestHead } from '../heads.js';

/** Returns a table whose clusters are represented by their names. */
function table(config: RouteConfiguration): RouteTable<string> {
  return buildRouteTable(config, (name) => name);
}

/** Returns a route to the cluster of this name. */
function to(cluster: string, match: RouteMatch = { prefix: '/' }): RouteConfig {
  return { match, route: { cluster } };
}

function oneHost(...routes: RouteConfig[]): RouteTable<string> {
  return table({ virtual_hosts: [{ name: 'all', domains: ['*'], routes }] });
}

/** Returns the cluster of a request's route, or undefined. */
function clusterOf(routes: RouteTable<string>, start: string, ...lines: string[]): string | undefined {
  return routes.match(requestHead(start, ...lines), 0)?.cluster;
}

/** Whether one route matches a request. */
function matches(match: RouteMatch, start: string, ...lines: string[]): boolean {
  return clusterOf(oneHost(to('it', match)), start, ...lines) === 'it';
}

/** Returns the position in a refusal. */
function refusalOf(build: () => unknown): string | undefined {
  try {
    build();
  } catch (error) {
    if (error instanceof BatonError) return error.where;
    throw error;
  }
  return undefined;
}

t.test('domains: exact, then longest suffix, then longest prefix, then *', async (t) => {
  const routes = table({
    virtual_hosts: [
      { name: 'any', domains: ['*'], routes: [to('any')] },
      { name: 'exact', domains: ['www.foo.com', 'api.foo.com:8080'], routes: [to('exact')] },
      { name: 'suffix', domains: ['*.foo.com'], routes: [to('suffix')] },
      { name: 'longer suffix', domains: ['*-bar.foo.com'], routes: [to('longer suffix')] },
      { name: 'prefix', domains: ['www.*'], routes: [to('prefix')] },
      { name: 'longer prefix', domains: ['www.foo.*'], routes: [to('longer prefix')] },
    ],
  });
  const cases: [string, string][] = [
    ['www.foo.com', 'exact'],
    ['WWW.Foo.COM', 'exact'],
    ['api.foo.com:8080', 'exact'],
    ['api.foo.com', 'suffix'],
    ['api.foo.com:80', 'any'],
    ['baz-bar.foo.com', 'longer suffix'],
    ['-bar.foo.com', 'suffix'],
    ['.foo.com', 'any'],
    ['a.b.foo.com', 'suffix'],
    ['www.foo.de', 'longer prefix'],
    ['www.foo.', 'prefix'],
    ['www.bar', 'prefix'],
    ['www.', 'any'],
    ['WwW.x', 'prefix'],
    ['foo.com', 'any'],
    ['x', 'any'],
  ];
  for (const [host, cluster] of cases) t.equal(clusterOf(routes, 'GET /', `Host: ${host}`), cluster, host);
});

t.test('domains: any set of domains is searched in order of precedence', async () => {
  const label = fc.stringMatching(/^[ab.]{1,6}$/);
  const domain = fc.oneof(
    label,
    label.map((text) => `*${text}`),
    label.map((text) => `${text}*`),
    fc.constant('*'),
  );
  fc.assert(
    fc.property(fc.uniqueArray(domain, { maxLength: 30 }), fc.stringMatching(/^[abAB.]{1,9}$/), (domains, host) => {
      const routes = table({
        virtual_hosts: domains.map((name) => ({ name, domains: [name], routes: [to(name)] })),
      });
      return clusterOf(routes, 'GET /', `Host: ${host}`) === bestDomain(domains, host.toLowerCase());
    }),
    { numRuns: 2000 },
  );
});

/** The definition, literally. */
function bestDomain(domains: readonly string[], host: string): string | undefined {
  if (domains.includes(host)) return host;
  const byLength = [...domains].filter((name) => name !== '*').sort((a, b) => b.length - a.length);
  const isWild = (name: string): boolean => host.length > name.length - 1;
  return (
    byLength.find((name) => name.startsWith('*') && isWild(name) && host.endsWith(name.slice(1))) ??
    byLength.find(
      (name) => !name.startsWith('*') && name.endsWith('*') && isWild(name) && host.startsWith(name.slice(0, -1)),
    ) ??
    domains.find((name) => name === '*')
  );
}

t.test('domains: a virtual host without a matching route does not fall back to another', async (t) => {
  const routes = table({
    virtual_hosts: [
      { name: 'foo', domains: ['foo'], routes: [to('foo', { prefix: '/foo' })] },
      { name: 'any', domains: ['*'], routes: [to('any')] },
    ],
  });
  t.equal(clusterOf(routes, 'GET /bar', 'Host: foo'), undefined);
  t.equal(clusterOf(routes, 'GET /bar', 'Host: bar'), 'any');
  const named = table({ virtual_hosts: [{ name: 'foo', domains: ['foo'], routes: [to('foo')] }] });
  t.equal(clusterOf(named, 'GET /', 'Host: bar'), undefined);
  t.equal(clusterOf(named, 'GET /'), undefined, 'without Host');
});

t.test('domains: ignore_port_in_host_matching removes the port', async (t) => {
  const routes = table({
    ignore_port_in_host_matching: true,
    virtual_hosts: [{ name: 'foo', domains: ['foo.com', '[::1]'], routes: [to('foo')] }],
  });
  for (const host of ['foo.com', 'foo.com:8080', '[::1]', '[::1]:80']) {
    t.equal(clusterOf(routes, 'GET /', `Host: ${host}`), 'foo', host);
  }
});

t.test('domains: a duplicate is refused with its position', async (t) => {
  const config = {
    virtual_hosts: [
      { name: 'a', domains: ['foo.com'] },
      { name: 'b', domains: ['x', 'FOO.com'] },
    ],
  };
  t.equal(
    refusalOf(() => table(config)),
    'virtual_hosts[1].domains[1]',
  );
});

t.test('paths: prefix, path, path_separated_prefix and safe_regex match', async (t) => {
  const cases: [RouteMatch, string, boolean][] = [
    [{ prefix: '/' }, '/', true],
    [{ prefix: '/' }, '*', false],
    [{ prefix: '' }, '*', true],
    [{ prefix: '/foo' }, '/foobar', true],
    [{ prefix: '/foo' }, '/foo?bar', true],
    [{ prefix: '/foo' }, '/fo', false],
    [{ prefix: '/foo' }, '/fo?o', false],
    [{ prefix: '/foo' }, '/Foo', false],
    [{ prefix: '/FOO', case_sensitive: false }, '/fOobar', true],
    [{ prefix: '/a?b' }, '/a?b', false],
    [{ path: '/foo' }, '/foo', true],
    [{ path: '/foo' }, '/foo?a=b', true],
    [{ path: '/foo' }, '/foo/', false],
    [{ path: '/foo' }, '/FOO', false],
    [{ path: '/Foo', case_sensitive: false }, '/foO?x', true],
    [{ path: '/É', case_sensitive: false }, '/\xc3\x89', true],
    [{ path: '/foo?a' }, '/foo?a', false],
    [{ path_separated_prefix: '/api/v1' }, '/api/v1', true],
    [{ path_separated_prefix: '/api/v1' }, '/api/v1?x', true],
    [{ path_separated_prefix: '/api/v1' }, '/api/v1/x', true],
    [{ path_separated_prefix: '/api/v1' }, '/api/v12', false],
    [{ path_separated_prefix: '/API/v1', case_sensitive: false }, '/api/V1/x', true],
    [{ safe_regex: { regex: '/b[io]t' } }, '/bit', true],
    [{ safe_regex: { regex: '/b[io]t' } }, '/bot?x', true],
    [{ safe_regex: { regex: '/b[io]t' } }, '/bite', false],
    [{ safe_regex: { regex: '/b[io]t' } }, '/x/bit', false],
    [{ safe_regex: { regex: '/a|/b' } }, '/bc', false],
    [{ safe_regex: { regex: '/(?i)FOO/.*' } }, '/foo/', true],
    [{ safe_regex: { regex: '/é+' } }, `/${Buffer.from('éé').toString('latin1')}`, true],
  ];
  for (const [match, path, expected] of cases)
    t.equal(matches(match, `GET ${path}`), expected, `${JSON.stringify(match)} ${path}`);
});

t.test('paths: CONNECT has none', async (t) => {
  t.equal(matches({ prefix: '' }, 'CONNECT foo:443', 'Host: foo:443'), false);
});

t.test('routes: the first match wins', async (t) => {
  const routes = oneHost(to('a', { prefix: '/a' }), to('b', { path: '/a/b' }), to('c'));
  t.equal(clusterOf(routes, 'GET /a/b'), 'a');
  t.equal(clusterOf(routes, 'GET /b'), 'c');
});

t.test('many routes that match a repeated header use the memory of one', async (t) => {
  const half = 'x'.repeat(25_000);
  const asks = (prefix: string): RouteConfig =>
    to(prefix, { prefix: '/', headers: [{ name: 'x', string_match: { prefix } }] });
  const routes = oneHost(...Array.from({ length: 100 }, (_, index) => asks(`${index}`)), to('other'));
  const head = requestHead('GET /', `x: ${half}`, `x: ${half}`);
  t.equal(routes.match(head, 0)?.cluster, 'other');
  t.equal(head.memory.retainedBytes(), 0);
});

t.test('many routes that match the scheme use the memory of one', (t) => {
  const match: RouteMatch = { prefix: '/', headers: [{ name: ':scheme', string_match: { exact: 'https' } }] };
  const routes = oneHost(...Array.from({ length: 2000 }, () => to('never', match)), to('it'));
  const headers = requestHead('GET /', 'x-forwarded-proto: http');
  const start = headers.memory.scratch(0);
  for (let count = 0; count < 50; count++) t.equal(routes.match(headers, 0)?.cluster, 'it');
  t.equal(headers.memory.scratch(0), start);
  t.end();
});

t.test('headers: each kind of matcher matches', async (t) => {
  const text = (string_match: object): object => ({ name: 'x', string_match });
  const cases: [object, string[], boolean][] = [
    [{ name: 'x' }, ['X: '], true],
    [{ name: 'x' }, [], false],
    [{ name: 'x', invert_match: true }, [], true],
    [{ name: 'x', present_match: true }, ['x: 1'], true],
    [{ name: 'x', present_match: false }, ['x: 1'], false],
    [{ name: 'x', present_match: false }, [], true],
    [{ name: 'x', present_match: false, invert_match: true }, ['x: 1'], true],
    [{ name: 'x', present_match: false, invert_match: true }, [], false],
    [{ name: 'x', present_match: true, treat_missing_header_as_empty: true }, [], true],
    [text({ exact: 'one' }), ['x: one'], true],
    [text({ exact: 'one' }), ['x: One'], false],
    [text({ exact: 'One', ignore_case: true }), ['x: oNE'], true],
    [text({ prefix: 'on' }), ['x: one'], true],
    [text({ prefix: 'ne' }), ['x: one'], false],
    [text({ suffix: 'ne' }), ['x: one'], true],
    [text({ suffix: 'on' }), ['x: one'], false],
    [text({ suffix: 'longer than one' }), ['x: one'], false],
    [text({ contains: 'n' }), ['x: one'], true],
    [text({ contains: 'NE', ignore_case: true }), ['x: one'], true],
    [text({ contains: 'two' }), ['x: one'], false],
    [text({ safe_regex: { regex: 'o.e' } }), ['x: one'], true],
    [text({ safe_regex: { regex: 'o.' } }), ['x: one'], false],
    [text({ exact: 'one' }), [], false],
    [{ ...text({ exact: 'one' }), invert_match: true }, ['x: two'], true],
    [{ ...text({ exact: 'one' }), invert_match: true }, ['x: one'], false],
    [{ ...text({ exact: 'one' }), invert_match: true }, [], false],
    [{ ...text({ exact: 'one' }), invert_match: true, treat_missing_header_as_empty: true }, [], true],
    [{ ...text({ safe_regex: { regex: '^$' } }), treat_missing_header_as_empty: true }, [], true],
    [text({ safe_regex: { regex: '^$' } }), [], false],
    [{ name: 'x', exact_match: 'one' }, ['x: one'], true],
    [{ name: 'x', exact_match: '' }, ['x: one'], true],
    [{ name: 'x', prefix_match: 'o' }, ['x: one'], true],
    [{ name: 'x', suffix_match: 'e' }, ['x: one'], true],
    [{ name: 'x', contains_match: 'n' }, ['x: one'], true],
    [{ name: 'x', safe_regex_match: { regex: 'on' } }, ['x: one'], false],
    [{ name: 'x', range_match: { start: '-10', end: '0' } }, ['x: -1'], true],
    [{ name: 'x', range_match: { start: '-10', end: '0' } }, ['x: -10'], true],
    [{ name: 'x', range_match: { start: '-10', end: '0' } }, ['x: 0'], false],
    [{ name: 'x', range_match: { start: '-10', end: '0' } }, ['x: -1x'], false],
    [{ name: 'x', range_match: { start: '-10', end: '0' } }, ['x: -1.5'], false],
    [{ name: 'x', range_match: { end: '10' } }, ['x: '], false],
    [
      { name: 'x', range_match: { start: '9223372036854775806', end: '9223372036854775807' } },
      ['x: 9223372036854775806'],
      true,
    ],
    [text({ exact: 'b' }), ['x: a', 'y: -', 'X: b'], true],
    [text({ exact: 'a,b' }), ['x: a', 'x: b'], false],
    [{ name: 'via', string_match: { exact: 'a,b' } }, ['via: a', 'y: -', 'Via: b'], true],
    [{ name: ':method', string_match: { exact: 'GET' } }, [], true],
    [{ name: ':method', string_match: { exact: 'POST' } }, [], false],
    [{ name: ':path', string_match: { exact: '/p?q=1' } }, [], true],
    [{ name: ':status' }, [], false],
    [{ name: ':status', present_match: false }, [], true],
    [{ name: ':authority', string_match: { exact: 'me' } }, ['Host: me'], true],
    [{ name: ':scheme', string_match: { exact: 'https' } }, ['x-forwarded-proto: https'], true],
    [{ name: 'Content-Type', string_match: { exact: 'text/plain' } }, ['content-type: text/plain'], true],
    [{ name: 'constructor', string_match: { exact: 'x' } }, ['constructor: x'], true],
  ];
  for (const [header, lines, expected] of cases) {
    const match: RouteMatch = { prefix: '/', headers: [header] };
    t.equal(matches(match, 'GET /p?q=1', ...lines), expected, `${JSON.stringify(header)} ${lines.join(' | ')}`);
  }
  const both: RouteMatch = { prefix: '/', headers: [{ name: 'a' }, { name: 'b' }] };
  t.equal(matches(both, 'GET /', 'a: 1'), false, 'all matchers must match');
  t.equal(matches(both, 'GET /', 'b: 1', 'a: 1'), true);
});

t.test('query parameters: presence and text of the first value, as sent', async (t) => {
  const cases: [object, string, boolean][] = [
    [{ name: 'a' }, '/?a', true],
    [{ name: 'a' }, '/?a=', true],
    [{ name: 'a' }, '/?b=1&a=2', true],
    [{ name: 'a' }, '/?ab=1', false],
    [{ name: 'ab' }, '/?a', false],
    [{ name: 'a' }, '/a', false],
    [{ name: 'a', present_match: true }, '/?a=1', true],
    [{ name: 'a', present_match: false }, '/?a=1', false],
    [{ name: 'a', present_match: false }, '/', true],
    [{ name: 'a', string_match: { exact: '1' } }, '/?a=1&a=2', true],
    [{ name: 'a', string_match: { exact: '2' } }, '/?a=1&a=2', false],
    [{ name: 'a', string_match: { exact: '1=2' } }, '/?a=1=2', true],
    [{ name: 'a', string_match: { exact: '' } }, '/?a', true],
    [{ name: 'a', string_match: { exact: ' ' } }, '/?a=%20', false],
    [{ name: 'a', string_match: { prefix: 'x' } }, '/?&a=xy', true],
    [{ name: 'a', string_match: { safe_regex: { regex: '[0-9]+' } } }, '/?a=12', true],
    [{ name: 'a', string_match: { exact: '1' } }, '/', false],
  ];
  for (const [parameter, path, expected] of cases) {
    const match: RouteMatch = { prefix: '/', query_parameters: [parameter] };
    t.equal(matches(match, `GET ${path}`), expected, `${JSON.stringify(parameter)} ${path}`);
  }
});

t.test('runtime_fraction accepts its fraction of the requests', async (t) => {
  const share = (numerator: number, denominator: 'HUNDRED' | 'TEN_THOUSAND' | 'MILLION', random: number): boolean => {
    const runtime_fraction = { default_value: { numerator, denominator } };
    const routes = oneHost(to('it', { prefix: '/', runtime_fraction }));
    return routes.match(requestHead('GET /'), random) !== undefined;
  };
  t.equal(share(0, 'HUNDRED', 0), false);
  t.equal(share(100, 'HUNDRED', 2 ** 32 - 1), true);
  t.equal(share(25, 'HUNDRED', 2 ** 30 - 1), true);
  t.equal(share(25, 'HUNDRED', 2 ** 30), false);
  t.equal(share(1, 'MILLION', 4294), true);
  t.equal(share(1, 'MILLION', 4295), false);
  t.equal(share(5000, 'TEN_THOUSAND', 2 ** 31), false);
});

t.test('grpc matches the gRPC content type', async (t) => {
  const match: RouteMatch = { prefix: '/', grpc: {} };
  t.equal(matches(match, 'POST /', 'content-type: application/grpc'), true);
  t.equal(matches(match, 'POST /', 'content-type: application/grpc+proto'), true);
  t.equal(matches(match, 'POST /', 'content-type: application/grpc-web'), false);
  t.equal(matches(match, 'POST /', 'content-type: application/json'), false);
  t.equal(matches(match, 'POST /'), false);
});

t.test("tls_context matches the client's certificate, as in Envoy", async (t) => {
  const of = (tls_context: NonNullable<RouteMatch['tls_context']>) => {
    const routes = oneHost(to('it', { prefix: '/', tls_context }));
    const untrusted = { ...authenticated, isPeerVerified: false };
    const clients = [undefined, anonymous, untrusted, authenticated];
    return clients.map((security) => routes.match(requestHead('GET /'), 0, security) !== undefined);
  };
  t.same(of({}), [true, true, true, true]);
  t.same(of({ presented: true }), [false, false, true, true]);
  t.same(of({ presented: false }), [true, true, false, false]);
  t.same(of({ validated: true }), [false, false, false, true]);
  t.same(of({ validated: false }), [true, true, true, false]);
  t.same(of({ presented: true, validated: true }), [false, false, false, true]);
  t.same(of({ presented: false, validated: true }), [false, false, false, false]);
});

t.test('weighted clusters get requests in proportion, also after a fraction', async (t) => {
  const weighted_clusters = {
    clusters: [
      { name: 'a', weight: 1 },
      { name: 'none', weight: 0 },
      { name: 'b', weight: 3 },
    ],
  };
  const runtime_fraction = { default_value: { numerator: 10, denominator: 'HUNDRED' } } as const;
  const routes = oneHost({ match: { prefix: '/', runtime_fraction }, route: { weighted_clusters } });
  const counts: Record<string, number> = {};
  const head = requestHead('GET /');
  const rounds = 200_000;
  for (let i = 0; i < rounds; i++) {
    const cluster = routes.match(head, Math.floor((i / rounds) * 2 ** 32))?.cluster ?? 'no match';
    counts[cluster] = (counts[cluster] ?? 0) + 1;
  }
  t.equal(counts['none'], undefined);
  t.ok(Math.abs(counts['no match']! / rounds - 0.9) < 0.001, 'the fraction');
  t.ok(Math.abs(counts['b']! / counts['a']! - 3) < 0.2, `a ${counts['a']}, b ${counts['b']}`);
});

t.test('weighted clusters: invalid weights are refused', async (t) => {
  const route =
    (weighted_clusters: object): (() => unknown) =>
    () =>
      oneHost({ match: { prefix: '/' }, route: { weighted_clusters } });
  const where = 'virtual_hosts[0].routes[0].route.weighted_clusters';
  t.equal(refusalOf(route({ clusters: [{ name: 'a' }] })), where);
  t.equal(
    refusalOf(
      route({
        clusters: [
          { name: 'a', weight: 2 ** 32 - 1 },
          { name: 'b', weight: 1 },
        ],
      }),
    ),
    where,
  );
  t.doesNotThrow(route({ clusters: [{ name: 'a', weight: 1 }], total_weight: 2 }), 'total_weight has no effect');
});

t.test('cluster_header names the cluster', async (t) => {
  const known = new Set(['one', 'two']);
  const config = {
    virtual_hosts: [
      { name: 'all', domains: ['*'], routes: [{ match: { prefix: '/' }, route: { cluster_header: 'X-Cluster' } }] },
    ],
  };
  const routes = buildRouteTable(config, (name) => (known.has(name) ? name : undefined));
  const match = (...lines: string[]): string | undefined => routes.match(requestHead('GET /', ...lines), 0)!.cluster;
  t.equal(match('x-cluster: one'), 'one');
  t.equal(match('x-cluster: two'), 'two');
  t.equal(match('x-cluster: three'), undefined);
  t.equal(match(), undefined);
  known.add('größe');
  t.equal(match(byteText('x-cluster: größe')), 'größe', 'a name beyond ASCII is UTF-8');
  known.add('three');
  t.equal(match('x-cluster: three'), 'three', 'a cluster added later is found');
  const asked: string[] = [];
  const careful = buildRouteTable(config, (name) => name, {
    findCluster: (name) => {
      asked.push(name);
      return undefined;
    },
  });
  t.equal(careful.match(requestHead('GET /', 'x-cluster: any'), 0)!.cluster, undefined);
  t.same(asked, ['any'], 'names from clients are looked up, not registered');
});

t.test('cluster_header may be a pseudo-header', async (t) => {
  const clusterFor = (cluster_header: string): string | undefined => {
    const routes = oneHost({ match: { prefix: '/' }, route: { cluster_header } });
    return routes.match(requestHead('GET /a?b', 'Host: c.test:80'), 0)!.cluster;
  };
  t.equal(clusterFor(':authority'), 'c.test:80');
  t.equal(clusterFor(':Authority'), 'c.test:80');
  t.equal(clusterFor('host'), 'c.test:80');
  t.equal(clusterFor(':path'), '/a?b');
  t.equal(clusterFor(':method'), 'GET');
});

t.test('require_tls redirects clients to https', async (t) => {
  const routes = (require_tls: 'ALL' | 'EXTERNAL_ONLY'): RouteTable<string> =>
    table({ virtual_hosts: [{ name: 'all', domains: ['*'], require_tls, routes: [to('it')] }] });
  const head = requestHead('GET /a?b', 'Host: foo.com', 'x-forwarded-proto: http', 'x-envoy-internal: true');
  const redirect = routes('ALL').match(head, 0)!;
  t.equal(redirect.kind, RouteKind.Redirect);
  t.equal(redirect.redirectStatus, 301);
  t.equal(redirect.redirectLocation(head, 'http'), 'https://foo.com/a?b');
  t.equal(routes('EXTERNAL_ONLY').match(head, 0)!.cluster, 'it');
  t.equal(clusterOf(routes('ALL'), 'GET /', 'x-forwarded-proto: https'), 'it');
  t.equal(clusterOf(routes('EXTERNAL_ONLY'), 'GET /', 'x-forwarded-proto: http'), undefined);
});

t.test('routes that cannot be compiled are refused with their position', async (t) => {
  const where = 'virtual_hosts[0].routes[0]';
  const cases: [RouteConfig, string][] = [
    [to('a', { safe_regex: { regex: '(' } }), `${where}.match.safe_regex.regex`],
    [to('a', { safe_regex: { regex: 'a)(b' } }), `${where}.match.safe_regex.regex`],
    [to('a', {}), `${where}.match`],
    [to('a', { prefix: '/', headers: [{ name: 'x', string_match: {} }] }), `${where}.match.headers[0].string_match`],
    [to('a', { prefix: '/', headers: [{}] }), `${where}.match.headers[0]`],
    [{ match: { prefix: '/' } }, where],
    [{ match: { prefix: '/' }, route: {} }, `${where}.route`],
    [
      {
        match: { prefix: '/' },
        route: { cluster: 'a', regex_rewrite: { pattern: { regex: 'a' }, substitution: '\\x' } },
      },
      `${where}.route.regex_rewrite.substitution`,
    ],
    [{ match: { prefix: '/' }, route: { cluster_header: ':scheme' } }, `${where}.route.cluster_header`],
    [{ match: { prefix: '/' }, route: { cluster_header: 'a b' } }, `${where}.route.cluster_header`],
    [
      { match: { prefix: '/' }, route: { cluster: 'a', host_rewrite_header: ':scheme' } },
      `${where}.route.host_rewrite_header`,
    ],
    [
      { match: { prefix: '/' }, route: { weighted_clusters: { clusters: [{ weight: 1 }] } } },
      `${where}.route.weighted_clusters.clusters[0]`,
    ],
    [to('a', { prefix: '/', headers: [{ name: 'a b' }] }), `${where}.match.headers[0].name`],
    [
      { match: { prefix: '/' }, route: { cluster: 'a', regex_rewrite: { pattern: { regex: '[' } } } },
      `${where}.route.regex_rewrite.pattern.regex`,
    ],
    [
      { ...to('a'), request_headers_to_add: [{ header: { key: ':path', value: 'x' } }] },
      `${where}.request_headers_to_add[0].header.key`,
    ],
    [
      { ...to('a'), response_headers_to_add: [{ header: { key: 'x', value: '%NO_SUCH%' } }] },
      `${where}.response_headers_to_add[0].header.value`,
    ],
    [
      { ...to('a'), response_headers_to_add: [{ header: { key: 'x', value: 'a', raw_value: 'Yg==' } }] },
      `${where}.response_headers_to_add[0].header.raw_value`,
    ],
  ];
  for (const [route, place] of cases)
    t.equal(
      refusalOf(() => oneHost(route)),
      place,
    );
  for (const name of ['a b', '', 'Host', ':path']) {
    t.equal(
      refusalOf(() => table({ internal_only_headers: ['x-a', name] })),
      'internal_only_headers[1]',
    );
  }
});
