// The explanation of a route and the route table agree, whatever the configuration.

import fc from 'fast-check';
import t from 'tap';
import type { Route as RouteConfig, RouteMatch, VirtualHost } from '../../../../src/config/generated/api.js';
import { builtRoute, explainRoute } from '../../../../src/http/routing/explanation/route-explanation.js';
import { buildRouteTable } from '../../../../src/http/routing/tables/route-table.js';
import { Runtime } from '../../../../src/runtime/runtime.js';
import { valueOfText } from '../../../../src/runtime/value.js';
import { requestHead } from '../heads.js';

const text = fc.constantFrom('/', '/a', '/a/b', '/a/bc', '/A', '/c?d', '');
const path: fc.Arbitrary<RouteMatch> = fc.oneof(
  fc.record({ prefix: text, case_sensitive: fc.boolean() }),
  fc.record({ path: text }),
  fc.constantFrom<RouteMatch>({ path_separated_prefix: '/a' }, { path_separated_prefix: '/a/b' }),
  fc.constantFrom<RouteMatch>(
    { safe_regex: { regex: '/a.*' } },
    { safe_regex: { regex: '[^/]*' } },
    { connect_matcher: {} },
  ),
);
const header = fc.record({
  name: fc.constantFrom('x-a', ':method', ':authority', ':path'),
  string_match: fc.record({ exact: fc.constantFrom('1', 'GET', 'a.b') }),
  invert_match: fc.boolean(),
});
const match: fc.Arbitrary<RouteMatch> = fc
  .tuple(
    path,
    fc.array(header, { maxLength: 2 }),
    fc.array(fc.record({ name: fc.constantFrom('d', 'e'), present_match: fc.boolean() }), { maxLength: 1 }),
    fc.constantFrom<RouteMatch>(
      {},
      {},
      { grpc: {} },
      { tls_context: { presented: false } },
      { tls_context: { presented: true } },
    ),
    fc.constantFrom<RouteMatch>({}, {}, fractionOf(0), fractionOf(100)),
  )
  .map(([where, headers, query_parameters, security, fraction]) => ({
    ...where,
    headers,
    query_parameters,
    ...security,
    ...fraction,
  }));
const domains = fc.uniqueArray(fc.constantFrom('a.b', '*.b', 'a.*', '*', 'A.c:80'), { minLength: 1, maxLength: 3 });
const requireTls = fc.constantFrom<VirtualHost['require_tls']>('NONE', 'NONE', 'EXTERNAL_ONLY', 'ALL');
const hosts = fc.array(fc.tuple(domains, fc.array(match, { maxLength: 4 }), requireTls), { maxLength: 3 }).map(hostsOf);
const request = fc.record({
  start: fc.constantFrom('GET /', 'GET /a/b', 'POST /a/b?d=1', 'GET /A', 'CONNECT a.b', 'GET /c?e'),
  host: fc.constantFrom('a.b', 'x.b', 'a.c:80', 'a.c', 'z'),
  lines: fc.subarray([
    ...['x-a: 1', 'x-a: 2', 'content-type: application/grpc'],
    ...['x-forwarded-proto: https', 'x-envoy-internal: true'],
  ]),
});

t.test('it takes the route that the table takes', async (t) => {
  const run = fc.property(hosts, request, fc.boolean(), (virtual_hosts, { host, lines, start }, ignoresPort) => {
    const config = { virtual_hosts, ignore_port_in_host_matching: ignoresPort };
    const head = requestHead(start, `Host: ${host}`, ...lines);
    const explanation = explainRoute(config, head, { randomValue: 7n });
    const expected = buildRouteTable(config, (name) => name).match(head, 0);
    if ((explanation.taken?.name ?? '') !== (expected?.name ?? '')) return false;
    const built = builtRoute(config, explanation, head, { randomValue: 7n });
    return built?.clusterName === expected?.clusterName && built?.virtualHostName === expected?.virtualHostName;
  });
  t.doesNotThrow(() => fc.assert(run, { numRuns: 2000 }));
});

t.test('it names the first condition of each route that does not hold', async (t) => {
  const routes = [
    to('admin', { prefix: '/', headers: [{ name: 'x-a', present_match: true }] }),
    to('path', { path: '/other' }),
    to('query', { prefix: '/', query_parameters: [{ name: 'd', string_match: { exact: '2' } }] }),
    to('fraction', { prefix: '/', ...fractionOf(50) }),
    to('last', { prefix: '/' }),
  ];
  const config = { virtual_hosts: [{ name: 'all', domains: ['a.*'], routes }] };
  const head = requestHead('GET /?d=1', 'Host: a.b');
  const { domain, taken, tried } = explainRoute(config, head, { randomValue: 50n });
  t.equal(domain, 'a.*');
  t.equal(taken?.name, 'last');
  t.strictSame(
    tried.map(({ failed }) => failed),
    [
      'headers[0]: {"name":"x-a","present_match":true}',
      '{"path":"/other"}',
      'query_parameters[0]: {"name":"d","string_match":{"exact":"2"}}',
      'runtime_fraction: {"runtime_key":"key","default_value":{"numerator":50,"denominator":"HUNDRED"}}',
      undefined,
    ],
  );
  t.equal(explainRoute(config, head, { randomValue: 49n }).taken?.name, 'fraction');
  t.equal(explainRoute(config, head, { randomValue: 49n, fraction: 'key' }).taken?.name, 'fraction');
  t.equal(explainRoute(config, head, { randomValue: 49n, fraction: '' }).taken?.name, 'last');
  t.strictSame(explainRoute(config, requestHead('GET /', 'Host: b.a'), { randomValue: 0n }).tried, []);
});

t.test('weights of runtime and the number in a header choose the cluster', async (t) => {
  const runtime = new Runtime();
  const clusters = ['a', 'b'].map((name) => ({ name, weight: 50 }));
  const weighted_clusters = { clusters, runtime_key_prefix: 'w', header_name: 'x-number' };
  const routes = [{ match: { prefix: '/' }, route: { weighted_clusters } }];
  const config = { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] };
  const clusterOf = (randomValue: bigint, ...lines: string[]) => {
    const head = requestHead('GET /', 'Host: a', ...lines);
    const circumstances = { randomValue, runtime };
    return builtRoute(config, explainRoute(config, head, circumstances), head, circumstances)?.clusterName;
  };
  t.equal(clusterOf(49n), 'a');
  t.equal(clusterOf(50n), 'b');
  t.equal(clusterOf(49n, 'x-number: 99'), 'b');
  t.equal(clusterOf(49n, 'x-number: z'), 'a');
  runtime.change({ version: 1, entries: [['w.a', valueOfText('0')]] });
  t.equal(clusterOf(49n), 'b');
});

function fractionOf(numerator: number): RouteMatch {
  return { runtime_fraction: { runtime_key: 'key', default_value: { numerator, denominator: 'HUNDRED' } } };
}

function to(name: string, match: RouteMatch): RouteConfig {
  return { name, match, route: { cluster: name } };
}

/** Names all routes, and gives each domain to the first host that has it. */
function hostsOf(parts: readonly (readonly [string[], RouteMatch[], VirtualHost['require_tls']])[]): VirtualHost[] {
  const seen = new Set<string>();
  return parts.map(([domains, matches, require_tls], host) => {
    const own = domains.filter((domain) => !seen.has(domain));
    for (const domain of own) seen.add(domain);
    const routes = matches.map((each, index) => to(`h${host}r${index}`, each));
    return { name: `h${host}`, domains: own, require_tls, routes } as VirtualHost;
  });
}
