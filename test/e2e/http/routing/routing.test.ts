// Route selection: domains, paths, headers, query parameters, fractions and weights.

import t from 'tap';
import { type Config, startUpstream, staticCluster, type Upstream } from '../../harness/index.js';
import { KeepAliveClient, tally } from '../keep-alive.js';
import { answering, managerOf, routeConfig, routeTo, startProxy } from '../proxy.js';

const [blue, green, red] = await Promise.all(['blue', 'green', 'red'].map(startNamed));
const proxy = await startProxy(t, {
  listeners: {
    domains: { route_config: routeConfig(domainHosts()) },
    withoutPorts: { route_config: routeConfig(domainHosts(), { ignore_port_in_host_matching: true }) },
    oneDomain: { route_config: routeConfig([hostAnswering('only.example.com')]) },
    paths: managerOf(pathRoutes()),
    headers: managerOf(headerRoutes()),
    query: managerOf(queryRoutes()),
    shares: managerOf(shareRoutes()),
    named: managerOf(namedClusterRoutes()),
    tls: {
      route_config: routeConfig([
        { name: 'tls', domains: ['*'], require_tls: 'ALL', routes: [routeTo({ prefix: '/' }, 'blue')] },
      ]),
    },
  },
  clusters: [staticCluster('blue', blue!.port), staticCluster('green', green!.port), staticCluster('red', red!.port)],
});

t.test('the most specific virtual host domain wins, whatever the order in the file', async (t) => {
  const cases: [string, string][] = [
    ['www.example.com', 'www.example.com'],
    ['WWW.Example.COM', 'www.example.com'],
    ['api.example.com', '*.example.com'],
    ['a.api.example.com', '*.api.example.com'],
    ['b.a.api.example.com', '*.api.example.com'],
    ['x-bar.example.com', '*-bar.example.com'],
    ['-bar.example.com', '*.example.com'],
    ['.example.com', '*'],
    ['example.com', 'example.*'],
    ['example.org', 'example.*'],
    ['example.co.uk', 'example.co.*'],
    ['example.', '*'],
    ['unknown.test', '*'],
    ['www.example.com:8080', '*'],
    ['with-port.test:81', 'with-port.test:81'],
    ['[::1]', '[::1]'],
  ];
  for (const [host, expected] of cases) {
    t.equal((await proxy.on('domains', '/', { headers: { host } })).body, expected, host);
  }
  const withPorts: [string, string][] = [
    ['www.example.com:8080', 'www.example.com'],
    ['api.example.com:1', '*.example.com'],
    ['[::1]:8080', '[::1]'],
  ];
  for (const [host, expected] of withPorts) {
    t.equal((await proxy.on('withoutPorts', '/', { headers: { host } })).body, expected, `${host} without its port`);
  }
  const { status, body } = await proxy.on('oneDomain', '/', { headers: { host: 'other.example.com' } });
  t.match({ status, body }, { status: 404, body: '' }, 'no virtual host: 404, empty');
});

t.test('routes are matched in file order', async (t) => {
  const cases: [string, string][] = [
    ['/exact', 'path'],
    ['/exact?a=b', 'path'],
    ['/exact/', 'none'],
    ['/exac', 'none'],
    ['/Exact', 'none'],
    ['/cASE?x', 'path without case'],
    ['/api', 'separated'],
    ['/api/', 'separated'],
    ['/api/x', 'separated'],
    ['/api?x', 'separated'],
    ['/apis', 'none'],
    ['/v12/abba', 'regex'],
    ['/v12/abba?x=/c', 'regex'],
    ['/v12/abc', 'none'],
    ['/x/v12/a', 'none'],
    ['/prefix/and/more', 'prefix'],
    ['/pre', 'prefix'],
    ['/pr', 'none'],
    ['/precaseXYZ', 'prefix'],
    ['/PRECaseXYZ', 'prefix without case'],
    ['/first/second', 'first'],
  ];
  for (const [path, expected] of cases) {
    const { status, body, headers } = await proxy.on('paths', path);
    if (expected === 'none') {
      t.match({ status, body }, { status: 404, body: '' }, `${path}: no route is 404 with an empty body`);
      t.equal(headers['content-length'], '0');
    } else t.match({ status, body }, { status: 200, body: expected }, path);
  }
});

t.test('a regex that is exponential in backtracking engines matches at once', async (t) => {
  const { status } = await proxy.on('paths', `/hard/${'a'.repeat(8000)}`);
  t.equal(status, 404);
});

t.test('header matchers select routes', async (t) => {
  const cases: [string, Record<string, string | string[]>, 'yes' | 'no', string?][] = [
    ['/exact/', { 'x-a': 'one' }, 'yes'],
    ['/exact/', { 'X-A': 'one' }, 'yes'],
    ['/exact/', { 'x-a': 'one ' }, 'yes'],
    ['/exact/', { 'x-a': 'One' }, 'no'],
    ['/exact/', { 'x-a': 'onetwo' }, 'no'],
    ['/exact/', {}, 'no'],
    ['/exact/', { 'x-a': ['one', 'two'] }, 'yes'],
    ['/prefix/', { 'x-a': 'prefix' }, 'yes'],
    ['/prefix/', { 'x-a': 'a pre' }, 'no'],
    ['/suffix/', { 'x-a': 'the post' }, 'yes'],
    ['/suffix/', { 'x-a': 'post it' }, 'no'],
    ['/contains/', { 'x-a': 'amidst' }, 'yes'],
    ['/contains/', { 'x-a': 'mi d' }, 'no'],
    ['/ignore-case/', { 'x-a': 'nOcASE' }, 'yes'],
    ['/regex/', { 'x-a': 'abc1' }, 'yes'],
    ['/regex/', { 'x-a': 'abc12' }, 'no'],
    ['/range/', { 'x-n': '-5' }, 'yes'],
    ['/range/', { 'x-n': '9' }, 'yes'],
    ['/range/', { 'x-n': '10' }, 'no'],
    ['/range/', { 'x-n': '9.5' }, 'no'],
    ['/range/', { 'x-n': 'some' }, 'no'],
    ['/range/', {}, 'no'],
    ['/prefix/', { 'x-a': ['pre', ''] }, 'yes'],
    ['/prefix/', { 'x-a': ['', 'pre'] }, 'yes'],
    ['/regex/', { 'x-a': ['', 'abc1'] }, 'yes'],
    ['/present/', { 'x-p': '' }, 'yes'],
    ['/present/', {}, 'no'],
    ['/absent/', {}, 'yes'],
    ['/absent/', { 'x-q': 'a' }, 'no'],
    ['/not/', { 'x-a': 'one' }, 'yes'],
    ['/not/', { 'x-a': 'two' }, 'no'],
    ['/not/', { 'x-a': ['one', 'two'] }, 'no'],
    ['/not/', { 'x-a': ['one', 'three'] }, 'yes'],
    ['/not/', {}, 'no'],
    ['/missing/', {}, 'yes'],
    ['/missing/', { 'x-m': 'a' }, 'no'],
    ['/method/', {}, 'yes', 'PUT'],
    ['/method/', {}, 'no', 'GET'],
    ['/scheme/', {}, 'yes'],
    ['/scheme/', { 'x-forwarded-proto': 'https' }, 'no'],
    ['/scheme/', { 'x-forwarded-proto': 'gopher' }, 'yes'],
    ['https://a.test/scheme/', {}, 'no'],
    ['http://a.test/scheme/', { 'x-forwarded-proto': 'https' }, 'yes'],
    ['/host/', { host: 'right.test' }, 'yes'],
    ['/host/', { host: 'wrong.test' }, 'no'],
    ['/both', { 'x-a': 'one', 'x-p': '1' }, 'yes'],
    ['/both', { 'x-a': 'one' }, 'no'],
  ];
  for (const [path, headers, expected, method = 'GET'] of cases) {
    const { body } = await proxy.on('headers', path, { method, headers });
    t.equal(body, expected, `${method} ${path} ${JSON.stringify(headers)}`);
  }
});

t.test('gRPC requests can have their own routes', async (t) => {
  const call = { method: 'POST', headers: { 'content-type': 'application/grpc' } };
  t.equal((await proxy.on('headers', '/grpc', call)).body, 'blue');
  t.equal((await proxy.on('headers', '/grpc')).body, 'green');
});

t.test('query parameter matchers select routes', async (t) => {
  const cases: [string, 'yes' | 'no'][] = [
    ['/exact/?a=1', 'yes'],
    ['/exact/?b=2&a=1&c', 'yes'],
    ['/exact/?a=1&a=2', 'yes'],
    ['/exact/?a=2&a=1', 'no'],
    ['/exact/?a=12', 'no'],
    ['/exact/?aa=1', 'no'],
    ['/exact/', 'no'],
    ['/present/?a', 'yes'],
    ['/present/?a=', 'yes'],
    ['/present/?b=a', 'no'],
    ['/absent/?b', 'yes'],
    ['/absent/?a', 'no'],
    ['/regex/?a=123', 'yes'],
    ['/regex/?a=123x', 'no'],
    ['/both/?b=2&a=1', 'yes'],
    ['/both/?b=1&a=2', 'no'],
  ];
  for (const [path, expected] of cases) t.equal((await proxy.on('query', path)).body, expected, path);
});

t.test('a route accepts its fraction of the requests, and weighted clusters share them', async (t) => {
  const client = new KeepAliveClient(t, proxy.ports['shares']!, 8);
  const bodies = async (path: string) => tally((await client.repeat(600, path)).map(({ body }) => body));

  // Six standard deviations around the expected values.
  const fraction = await bodies('/fraction');
  t.ok(Math.abs(fraction['taken']! - 180) < 68, `taken ${fraction['taken']} of 600 for 30 %`);
  const weighted = await bodies('/weighted');
  t.ok(Math.abs(weighted['blue']! - 450) < 64, `blue ${weighted['blue']} of 600 for 75 %`);
  t.equal(weighted['blue']! + weighted['green']!, 600, 'a weight of 0 gets nothing');
  t.equal((await proxy.on('shares', '/never')).status, 404);
});

t.test('a request may name its cluster, and the route configures the response when it does not exist', async (t) => {
  const headers = { 'x-cluster': 'nobody' };
  t.equal((await proxy.on('named', '/', { headers: { 'x-cluster': 'red' } })).body, 'red');
  t.equal((await proxy.on('named', '/authority', { headers: { host: 'green' } })).body, 'green');
  t.equal((await proxy.on('named', '/404', { headers })).status, 404);
  t.equal((await proxy.on('named', '/500', { headers })).status, 500);
  t.equal((await proxy.on('named', '/', { headers })).status, 503);
  t.equal((await proxy.on('named', '/')).status, 503, 'no header');
});

t.test('require_tls redirects plain requests to https', async (t) => {
  const { status, headers } = await proxy.on('tls', '/a?b', { headers: { host: 'secure.test' } });
  t.match({ status, location: headers.location }, { status: 301, location: 'https://secure.test/a?b' });
  const throughTls = await proxy.on('tls', '/a?b', { headers: { 'x-forwarded-proto': 'https' } });
  t.equal(throughTls.body, 'blue', 'a request that arrived over TLS earlier is routed');
});

function domainHosts(): Config[] {
  const domains = [
    '*',
    '*.example.com',
    'example.*',
    '*-bar.example.com',
    'www.example.com',
    '*.api.example.com',
    'example.co.*',
    'with-port.test:81',
    '[::1]',
  ];
  return domains.map(hostAnswering);
}

function hostAnswering(domain: string): Config {
  return { name: domain, domains: [domain], routes: [answering({ prefix: '/' }, domain)] };
}

function pathRoutes(): Config[] {
  return [
    answering({ path: '/exact' }, 'path'),
    answering({ path: '/Case', case_sensitive: false }, 'path without case'),
    answering({ path_separated_prefix: '/api' }, 'separated'),
    answering({ safe_regex: { regex: '/v[0-9]+/(a|b)*' } }, 'regex'),
    answering({ safe_regex: { regex: '/hard/(a+)+b' } }, 'regex'),
    answering({ prefix: '/pre' }, 'prefix'),
    answering({ prefix: '/PRECASE', case_sensitive: false }, 'prefix without case'),
    answering({ prefix: '/first' }, 'first'),
    answering({ prefix: '/first/second' }, 'never'),
  ];
}

function headerRoutes(): Config[] {
  const matchers: Record<string, Config> = {
    exact: { name: 'x-a', string_match: { exact: 'one' } },
    prefix: { name: 'x-a', string_match: { prefix: 'pre' } },
    suffix: { name: 'x-a', string_match: { suffix: 'post' } },
    contains: { name: 'x-a', string_match: { contains: 'mid' } },
    'ignore-case': { name: 'x-a', string_match: { exact: 'NoCase', ignore_case: true } },
    regex: { name: 'x-a', string_match: { safe_regex: { regex: '[a-f]+[0-9]' } } },
    range: { name: 'x-n', range_match: { start: -5, end: 10 } },
    present: { name: 'x-p', present_match: true },
    absent: { name: 'x-q', present_match: false },
    not: { name: 'x-a', string_match: { exact: 'two' }, invert_match: true },
    missing: { name: 'x-m', string_match: { exact: '' }, treat_missing_header_as_empty: true },
    method: { name: ':method', string_match: { exact: 'PUT' } },
    scheme: { name: ':scheme', string_match: { exact: 'http' } },
    host: { name: ':authority', string_match: { exact: 'right.test' } },
  };
  return [
    ...Object.entries(matchers).map(([name, matcher]) => answering({ prefix: `/${name}/`, headers: [matcher] }, 'yes')),
    answering({ prefix: '/both', headers: [matchers['exact'], matchers['present']] }, 'yes'),
    routeTo({ prefix: '/grpc', grpc: {} }, 'blue'),
    routeTo({ prefix: '/grpc' }, 'green'),
    answering({ prefix: '/' }, 'no'),
  ];
}

function queryRoutes(): Config[] {
  const route = (name: string, ...parameters: Config[]) =>
    answering({ prefix: `/${name}/`, query_parameters: parameters }, 'yes');
  return [
    route('exact', { name: 'a', string_match: { exact: '1' } }),
    route('present', { name: 'a', present_match: true }),
    route('absent', { name: 'a', present_match: false }),
    route('regex', { name: 'a', string_match: { safe_regex: { regex: '[0-9]+' } } }),
    route('both', { name: 'a', string_match: { exact: '1' } }, { name: 'b', string_match: { exact: '2' } }),
    answering({ prefix: '/' }, 'no'),
  ];
}

function shareRoutes(): Config[] {
  const fraction = (numerator: number) => ({
    runtime_fraction: { default_value: { numerator, denominator: 'HUNDRED' } },
  });
  const clusters = [
    { name: 'blue', weight: 75 },
    { name: 'green', weight: 25 },
    { name: 'red', weight: 0 },
  ];
  return [
    answering({ prefix: '/fraction', ...fraction(30) }, 'taken'),
    answering({ prefix: '/fraction' }, 'left'),
    answering({ prefix: '/never', ...fraction(0) }, 'never'),
    { match: { prefix: '/weighted' }, route: { weighted_clusters: { clusters } } },
  ];
}

function namedClusterRoutes(): Config[] {
  const route = (prefix: string, code?: string) => ({
    match: { prefix },
    route: { cluster_header: 'x-cluster', ...(code && { cluster_not_found_response_code: code }) },
  });
  const byAuthority = { match: { prefix: '/authority' }, route: { cluster_header: ':authority' } };
  return [byAuthority, route('/404', 'NOT_FOUND'), route('/500', 'INTERNAL_SERVER_ERROR'), route('/')];
}

function startNamed(name: string): Promise<Upstream> {
  return startUpstream(t, (_request, response) => response.end(name));
}
