// Rewrites of path and authority before a request is sent to a host.

import t from 'tap';
import { type Config, type EchoedRequest, loopback, startEchoUpstream, staticCluster } from '../../harness/index.js';
import { headerOption, managerOf, routeConfig, routeTo, startProxy } from '../proxy.js';

const upstream = await startEchoUpstream(t);
/** Requests for a name without a port go to the host. */
const byHost = {
  route_config: routeConfig([
    { name: 'named', domains: ['a.test', '[::1]'], routes: [redirecting(), routeTo({ prefix: '/' }, 'echo')] },
  ]),
};
const proxy = await startProxy(t, {
  listeners: {
    main: managerOf(rewritingRoutes()),
    normalized: managerOf([routeTo({ prefix: '/' }, 'echo')], {
      normalize_path: true,
      merge_slashes: true,
      path_with_escaped_slashes_action: 'UNESCAPE_AND_FORWARD',
    }),
    rejecting: managerOf([routeTo({ prefix: '/' }, 'echo')], {
      path_with_escaped_slashes_action: 'REJECT_REQUEST',
    }),
    redirecting: managerOf([routeTo({ prefix: '/' }, 'echo')], {
      normalize_path: true,
      path_with_escaped_slashes_action: 'UNESCAPE_AND_REDIRECT',
    }),
    verbatim: managerOf([routeTo({ prefix: '/' }, 'echo')]),
    anyPort: { ...byHost, strip_any_host_port: true, strip_trailing_host_dot: true },
    ownPort: { ...byHost, strip_matching_host_port: true },
    asWritten: byHost,
  },
  clusters: [
    staticCluster('echo', upstream.port),
    {
      ...staticCluster('named', []),
      load_assignment: {
        cluster_name: 'named',
        endpoints: [{ lb_endpoints: [{ endpoint: { address: loopback(upstream.port), hostname: 'host-one.test' } }] }],
      },
    },
  ],
});

t.test('the path is rewritten, and its query is unchanged', async (t) => {
  const cases: [string, string][] = [
    ['/prefix/a/b?c=/prefix/', '/new/a/b?c=/prefix/'],
    ['/prefix/', '/new/'],
    ['/strip/a', '/a'],
    ['/exact', '/other'],
    ['/exact?q', '/other?q'],
    ['/separated', '/s'],
    ['/separated/a?q', '/s/a?q'],
    ['/regex/service/foo/v1/api?x=/service/a', '/regex/foo/instance/v1/api?x=/service/a'],
    ['/empty', '/'],
    ['/empty?q', '/?q'],
    ['/all/aXbXc', '/all/a-b-c'],
    ['/plain/%2e%2E//x/../y;z?a%20b', '/plain/%2e%2E//x/../y;z?a%20b'],
    ['/plain?', '/plain?'],
  ];
  for (const [path, expected] of cases) {
    const { url, headers } = await echoed('main', path);
    t.equal(url, expected, path);
    const original = url === path ? undefined : path;
    t.equal(headers['x-envoy-original-path'], original, `original path of ${path}`);
  }
});

t.test('the authority is rewritten as the route says', async (t) => {
  const host = async (path: string, headers: Record<string, string> = {}) =>
    (await echoed('main', path, { host: 'client.test', ...headers })).headers;
  t.equal((await host('/plain')).host, 'client.test');
  t.equal((await host('/literal')).host, 'other.test:99');
  t.equal((await host('/header', { 'x-host': 'from-header.test' })).host, 'from-header.test');
  t.equal((await host('/header')).host, 'client.test', 'without the header it is unchanged');
  t.equal((await host('/path-regex/blue/x?y')).host, 'blue.svc.test');
  t.equal((await host('/auto')).host, 'host-one.test', "the endpoint's host name");
  const forwarded = await host('/forwarded');
  t.match(forwarded, { host: 'other.test', 'x-forwarded-host': 'client.test' });
  t.equal((await host('/weighted')).host, 'weighted.test');
});

t.test('a path with a fragment is refused', async (t) => {
  t.equal((await proxy.on('main', '/plain#part')).status, 400);
});

t.test('port and trailing dot of a host are removed before matching when configured', async (t) => {
  const own = proxy.ports['ownPort']!;
  const cases: [string, string, string | undefined][] = [
    ['anyPort', 'a.test', 'a.test'],
    ['anyPort', 'A.test:1', 'A.test'],
    ['anyPort', 'a.test.', 'a.test'],
    ['anyPort', 'a.test.:80', 'a.test'],
    ['anyPort', '[::1]:80', '[::1]'],
    ['anyPort', '[::1]', '[::1]'],
    ['ownPort', `a.test:${own}`, 'a.test'],
    ['ownPort', `[::1]:${own}`, '[::1]'],
    ['ownPort', `a.test:${own + 1}`, undefined],
    ['ownPort', 'a.test.', undefined],
    ['asWritten', 'a.test', 'a.test'],
    ['asWritten', 'a.test:80', undefined],
    ['asWritten', 'a.test.', undefined],
  ];
  for (const [listener, host, expected] of cases) {
    const { status, body } = await proxy.on(listener, '/', { headers: { host } });
    const seen = status === 200 ? (JSON.parse(body) as EchoedRequest).headers.host : undefined;
    t.equal(seen, expected, `${listener} ${host}`);
  }
  const { headers } = await proxy.on('anyPort', '/away', { headers: { host: 'a.test.:8080' } });
  t.equal(headers.location, 'http://a.test/there');
});

t.test('paths are normalized only when configured', async (t) => {
  const cases: [string, string][] = [
    ['/a/../b?x=/../', '/b?x=/../'],
    ['/a/./b/', '/a/b/'],
    ['/%61%2e', '/a.'],
    ['/a/%2e%2e/b', '/b'],
    ['/../../a', '/a'],
    ['//a///b', '/a/b'],
    ['/a%2Fb%5cc', '/a/b/c'],
    ['/%20', '/%20'],
  ];
  for (const [path, expected] of cases) t.equal((await echoed('normalized', path)).url, expected, path);
  for (const [path] of cases) t.equal((await echoed('verbatim', path)).url, path, `${path} unchanged`);
});

t.test('escaped slashes can be refused or redirected', async (t) => {
  t.equal((await proxy.on('rejecting', '/a%2fb')).status, 400);
  t.equal((await proxy.on('rejecting', '/a%5Cb')).status, 400);
  t.equal((await proxy.on('rejecting', '/a?b%2f')).status, 200, 'the query is exempt');
  const { status, headers } = await proxy.on('redirecting', '/a%2fb?c');
  t.match({ status, location: headers.location }, { status: 307, location: '/a/b?c' });
  t.equal((await proxy.on('redirecting', '/a/b?c%2f')).status, 200);
  const grpc = await proxy.on('redirecting', '/a%2fb', { headers: { 'content-type': 'application/grpc' } });
  t.match(
    grpc,
    { status: 200, headers: { 'grpc-status': '13', location: undefined } },
    'gRPC clients are refused instead',
  );
  t.equal(await proxy.baton.stat('http.redirecting.downstream_rq_failed_path_normalization'), 1);
});

async function echoed(listener: string, path: string, headers: Record<string, string> = {}): Promise<EchoedRequest> {
  const { status, body } = await proxy.on(listener, path, { headers });
  if (status !== 200) throw new Error(`${path}: ${status} ${body}`);
  return JSON.parse(body);
}

function rewritingRoutes(): Config[] {
  const regex = (regex: string, substitution: string): Config => ({ pattern: { regex }, substitution });
  return [
    routeTo({ prefix: '/prefix/' }, 'echo', { prefix_rewrite: '/new/' }),
    routeTo({ prefix: '/strip/' }, 'echo', { prefix_rewrite: '/' }),
    routeTo({ path: '/exact' }, 'echo', { prefix_rewrite: '/other' }),
    routeTo({ path_separated_prefix: '/separated' }, 'echo', { prefix_rewrite: '/s' }),
    routeTo({ prefix: '/regex/' }, 'echo', {
      regex_rewrite: regex('/service/([^/]+)(/.*)$', '/\\1/instance\\2'),
    }),
    routeTo({ path: '/empty' }, 'echo', { regex_rewrite: regex('.*', '') }),
    routeTo({ prefix: '/all/' }, 'echo', { regex_rewrite: regex('X', '-') }),
    routeTo({ prefix: '/literal' }, 'echo', { host_rewrite_literal: 'other.test:99' }),
    routeTo({ prefix: '/header' }, 'echo', { host_rewrite_header: 'x-host' }),
    routeTo({ prefix: '/path-regex/' }, 'echo', {
      host_rewrite_path_regex: regex('^/path-regex/([a-z]+)/.*$', '\\1.svc.test'),
    }),
    routeTo({ prefix: '/auto' }, 'named', { auto_host_rewrite: true }),
    routeTo({ prefix: '/forwarded' }, 'echo', { host_rewrite_literal: 'other.test', append_x_forwarded_host: true }),
    {
      match: { prefix: '/weighted' },
      route: {
        weighted_clusters: { clusters: [{ name: 'echo', weight: 1, host_rewrite_literal: 'weighted.test' }] },
      },
    },
    routeTo({ prefix: '/' }, 'echo', {}, { request_headers_to_add: [headerOption('x-plain', '1')] }),
  ];
}

function redirecting(): Config {
  return { match: { prefix: '/away' }, redirect: { path_redirect: '/there' } };
}
