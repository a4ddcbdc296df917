// The effects of a route on a request and its response, and its local replies.

import { join } from 'node:path';
import t from 'tap';
import { StreamInfo } from '../../../../src/access-log/stream/stream-info.js';
import { Priority } from '../../../../src/common/priority.js';
import type {
  Any,
  RedirectAction,
  RouteAction,
  Route as RouteConfig,
  RouteConfiguration,
  RouteMatch,
  VirtualHost,
} from '../../../../src/config/generated/api.js';
import type { HeaderBlock } from '../../../../src/http/headers/header-block.js';
import { type Route, RouteKind } from '../../../../src/http/routing/actions/route.js';
import {
  buildRouteTable,
  FILTER_OFF,
  FILTER_ON,
  type RouteFilter,
  type RouteTableOptions,
} from '../../../../src/http/routing/tables/route-table.js';
import { linesOf, requestHead, responseHead, valuesOf } from '../heads.js';

/** Returns the route that a request matches in a table of one virtual host. */
function routeOf(
  head: HeaderBlock,
  routes: VirtualHost['routes'],
  host: VirtualHost = {},
  config: RouteConfiguration = {},
  options: RouteTableOptions<string> = {},
  random = 0,
): Route<string> {
  const virtual_hosts = [{ name: 'host', domains: ['*'], routes, ...host }];
  return buildRouteTable({ ...config, virtual_hosts }, (name) => name, options).match(head, random)!;
}

/** Returns a request after the rewrites of an action. */
function rewritten(action: RouteAction, match: RouteMatch, path: string, ...lines: string[]): HeaderBlock {
  const head = requestHead(`GET ${path}`, ...lines);
  routeOf(head, [{ match, route: { cluster: 'a', ...action } }]).applyRewrites(head);
  return head;
}

t.test("timeouts and other settings have Envoy's defaults", async (t) => {
  const head = requestHead('GET /');
  const plain = routeOf(head, [{ name: 'r', match: { prefix: '/' }, route: { cluster: 'a' } }]);
  t.match(plain, { name: 'r', virtualHostName: 'host', kind: RouteKind.Forward, cluster: 'a', clusterName: 'a' });
  t.equal(plain.timeoutMs, 15_000);
  t.equal(plain.idleTimeoutMs, undefined);
  t.equal(plain.retryPolicy, undefined);
  t.equal(plain.priority, Priority.Default);
  t.equal(plain.clusterNotFoundStatus, 503);
  t.equal(plain.allowsUpgrade('websocket'), undefined);
  t.equal(plain.requestMutations, undefined);
  t.equal(plain.responseMutations, undefined);
  const action: RouteAction = {
    cluster: 'a',
    timeout: '0s',
    idle_timeout: '1.500s',
    priority: 'HIGH',
    cluster_not_found_response_code: 'NOT_FOUND',
    auto_host_rewrite: true,
    upgrade_configs: [{ upgrade_type: 'WebSocket' }, { upgrade_type: 'x', enabled: false }],
  };
  const set = routeOf(head, [{ match: { prefix: '/' }, route: action, per_request_buffer_limit_bytes: 7 }], {
    include_request_attempt_count: true,
    include_attempt_count_in_response: true,
    per_request_buffer_limit_bytes: 9,
  });
  t.equal(set.timeoutMs, 0);
  t.equal(set.idleTimeoutMs, 1500);
  t.equal(set.priority, Priority.High);
  t.equal(set.clusterNotFoundStatus, 404);
  t.equal(set.autoHostRewrite, true);
  t.equal(set.allowsUpgrade('websocket'), true);
  t.equal(set.allowsUpgrade('x'), false);
  t.equal(set.includesRequestAttemptCount, true);
  t.equal(set.includesAttemptCountInResponse, true);
  t.equal(set.requestBufferLimit, 7);
});

t.test('the retry buffer limit is the newer field of route or virtual host, else the older one', async (t) => {
  const limitWith = (route: RouteConfig, host: VirtualHost) =>
    routeOf(requestHead('GET /'), [{ match: { prefix: '/' }, route: { cluster: 'a' }, ...route }], host)
      .requestBufferLimit;
  const [older, newer] = ['per_request_buffer_limit_bytes', 'request_body_buffer_limit'] as const;
  t.equal(limitWith({}, {}), undefined);
  t.equal(limitWith({ [older]: 1, [newer]: '2' }, { [older]: 3, [newer]: '4' }), 2);
  t.equal(limitWith({ [older]: 1 }, { [older]: 3, [newer]: '4' }), 4);
  t.equal(limitWith({ [newer]: '0' }, { [older]: 3 }), 0);
});

t.test("the retry policy is the route's, else that of the virtual host", async (t) => {
  const head = requestHead('GET /');
  const host: VirtualHost = { retry_policy: { retry_on: '5xx', num_retries: 5 } };
  t.equal(routeOf(head, [{ match: { prefix: '/' }, route: { cluster: 'a' } }], host).retryPolicy!.maxRetries, 5);
  const own = { cluster: 'a', retry_policy: { retry_on: 'reset', num_retries: 2 } };
  t.equal(routeOf(head, [{ match: { prefix: '/' }, route: own }], host).retryPolicy!.maxRetries, 2);
});

t.test('prefix_rewrite replaces the matched prefix', async (t) => {
  const cases: [RouteMatch, string, string, string][] = [
    [{ prefix: '/api' }, '/', '/api/x?y', '//x?y'],
    [{ prefix: '/api/' }, '/', '/api/x?y', '/x?y'],
    [{ prefix: '/' }, '/base/', '/x', '/base/x'],
    [{ prefix: '/api', case_sensitive: false }, '/v1', '/API/x', '/v1/x'],
    [{ path: '/a' }, '/much/longer', '/a?q', '/much/longer?q'],
    [{ path_separated_prefix: '/a' }, '/b', '/a/c', '/b/c'],
    [{ safe_regex: { regex: '/a.*' } }, '/b', '/abc?q', '/b?q'],
    [{ prefix: '/' }, '/é', '/x', `${Buffer.from('/é').toString('latin1')}x`],
  ];
  for (const [match, prefix_rewrite, path, expected] of cases) {
    const head = rewritten({ prefix_rewrite }, match, path);
    t.equal(head.pathText(), expected, `${JSON.stringify(match)} ${path}`);
    t.same(valuesOf(head, 'x-envoy-original-path'), [path]);
    t.equal(head.startLineStart, head.startLineEnd, 'the start line is rewritten');
  }
});

t.test('regex_rewrite replaces every match in the path, never in the query', async (t) => {
  const rewrite = (regex: string, substitution: string, path: string): string =>
    rewritten({ regex_rewrite: { pattern: { regex }, substitution } }, { prefix: '/' }, path).pathText();
  t.equal(rewrite('^/service/([^/]+)(/.*)$', '\\2/instance/\\1', '/service/foo/v1/api?x'), '/v1/api/instance/foo?x');
  t.equal(rewrite('one', 'two', '/xxx/one/yyy/one/zzz?one'), '/xxx/two/yyy/two/zzz?one');
  t.equal(rewrite('(?i)/xxx/', '/yyy/', '/aaa/XxX/bbb'), '/aaa/yyy/bbb');
  t.equal(rewrite('b', '[\\0]$1\\\\', '/abc'), '/a[b]$1\\c');
  t.equal(rewrite('none', 'x', '/abc'), '/abc');
  t.equal(rewrite('^/a', '/é', '/a/\xff'), '/\xc3\xa9/\xff', 'invalid UTF-8 is kept');
  t.equal(rewrite('é', 'e', '/\xc3\xa9'), '/e');
  t.equal(rewrite('(.*)', '/v1\\1', '/abc?x'), '/v1/abc?x', 'once, though the empty end matches too');
  t.equal(rewrite('.*', '', '/abc'), '/', 'no request has an empty path');
  t.equal(rewrite('^/abc$', '', '/abc?x'), '/?x');
});

t.test('suppressed x-envoy headers are not written', async (t) => {
  const head = requestHead('GET /a', 'Host: old');
  const action = { cluster: 'a', prefix_rewrite: '/b', host_rewrite_literal: 'new' };
  routeOf(head, [{ match: { prefix: '/a' }, route: action }]).applyRewrites(head, false);
  t.same(linesOf(head), ['host: new']);
  t.equal(head.pathText(), '/b');
});

t.test('rewrites work when the header section has left the receive window', async (t) => {
  const head = requestHead('GET /api/x?y', 'Host: old', 'a: b');
  t.ok(head.retain());
  const action = { cluster: 'a', prefix_rewrite: '/v1', host_rewrite_literal: 'new', append_x_forwarded_host: true };
  routeOf(head, [{ match: { prefix: '/api' }, route: action }]).applyRewrites(head);
  t.equal(head.pathText(), '/v1/x?y');
  t.same(linesOf(head), [
    'a: b',
    'x-forwarded-host: old',
    'x-envoy-original-host: old',
    'host: new',
    'x-envoy-original-path: /api/x?y',
  ]);
  head.clear();
});

t.test('host rewrites replace the authority', async (t) => {
  const hostAfter = (action: RouteAction, ...lines: string[]): string[] =>
    valuesOf(rewritten(action, { prefix: '/' }, '/eu/x?q', ...lines), 'host');
  t.same(hostAfter({ host_rewrite_literal: 'new' }, 'Host: old'), ['new']);
  t.same(hostAfter({ host_rewrite_header: 'X-Host' }, 'host: old', 'x-host: other'), ['other']);
  t.same(hostAfter({ host_rewrite_header: ':method' }, 'host: old'), ['GET']);
  t.same(hostAfter({ host_rewrite_header: 'X-Host' }, 'host: old'), ['old'], 'a missing header changes nothing');
  const host_rewrite_path_regex = { pattern: { regex: '^/(\\w+)/.*$' }, substitution: '\\1.example.com' };
  t.same(hostAfter({ host_rewrite_path_regex }, 'host: old'), ['eu.example.com']);
});

t.test('append_x_forwarded_host appends the original host', async (t) => {
  const after = (...lines: string[]): string[] =>
    valuesOf(
      rewritten({ host_rewrite_literal: 'new', append_x_forwarded_host: true }, { prefix: '/' }, '/', ...lines),
      'x-forwarded-host',
    );
  t.same(after('host: old'), ['old']);
  t.same(after('host: old', 'x-forwarded-host: older'), ['older,old']);
  t.same(after('host: old', 'x-forwarded-host: older, old'), ['older, old'], 'not twice');
});

t.test('auto_host_rewrite records the original host at the first attempt only', async (t) => {
  const head = requestHead('GET /', 'host: old');
  const action = { cluster: 'a', auto_host_rewrite: true, append_x_forwarded_host: true };
  const route = routeOf(head, [{ match: { prefix: '/' }, route: action }]);
  route.rewriteToUpstreamHost(head, 'one');
  route.rewriteToUpstreamHost(head, 'two', true, false);
  t.same(linesOf(head), ['x-forwarded-host: old', 'x-envoy-original-host: old', 'host: two']);
});

t.test('redirects build the location', async (t) => {
  const location = (redirect: RedirectAction, path: string, host = 'foo.com', scheme = 'http'): string => {
    const head = requestHead(`GET ${path}`, `Host: ${host}`);
    return routeOf(head, [{ match: { prefix: '/old' }, redirect }]).redirectLocation(head, scheme);
  };
  t.equal(location({}, '/old?a'), 'http://foo.com/old?a');
  t.equal(location({ https_redirect: true }, '/old?a'), 'https://foo.com/old?a');
  t.equal(
    location({ https_redirect: true }, '/old', 'foo.com:80'),
    'https://foo.com/old',
    'the default port is removed',
  );
  t.equal(location({ https_redirect: true }, '/old', 'foo.com:8080'), 'https://foo.com:8080/old');
  t.equal(location({ https_redirect: true }, '/old', '[::1]:80'), 'https://[::1]/old');
  t.equal(location({ scheme_redirect: 'http' }, '/old', 'foo.com:443', 'https'), 'http://foo.com/old');
  t.equal(location({ scheme_redirect: 'https' }, '/old', 'foo.com:443', 'https'), 'https://foo.com:443/old');
  t.equal(location({ port_redirect: 8443, https_redirect: true }, '/old', 'foo.com:80'), 'https://foo.com:8443/old');
  t.equal(location({ port_redirect: 81 }, '/old', '[::1]'), 'http://[::1]:81/old');
  t.equal(location({ host_redirect: 'bar.com' }, '/old?a', 'foo.com:81'), 'http://bar.com/old?a');
  t.equal(location({ host_redirect: 'bar.com', port_redirect: 82 }, '/old'), 'http://bar.com:82/old');
  t.equal(location({ path_redirect: '/new' }, '/old/x?a'), 'http://foo.com/new?a');
  t.equal(location({ path_redirect: '/new?b' }, '/old?a'), 'http://foo.com/new?b');
  t.equal(location({ path_redirect: '/new', strip_query: true }, '/old?a'), 'http://foo.com/new');
  t.equal(location({ path_redirect: '/new?b', strip_query: true }, '/old?a'), 'http://foo.com/new?b');
  t.equal(location({ strip_query: true }, '/old?a'), 'http://foo.com/old');
  t.equal(location({ prefix_rewrite: '/new' }, '/old/x?a'), 'http://foo.com/new/x?a');
  t.equal(location({ prefix_rewrite: '/new', strip_query: true }, '/old/x?a'), 'http://foo.com/new/x');
  const regex_rewrite = { pattern: { regex: '^/old/(.*)$' }, substitution: '/\\1/new' };
  t.equal(location({ regex_rewrite }, '/old/x?a'), 'http://foo.com/x/new?a');
  t.equal(location({ regex_rewrite: { pattern: { regex: '.*' }, substitution: '' } }, '/old?a'), 'http://foo.com/?a');
});

t.test('redirect codes map to statuses', async (t) => {
  const status = (response_code?: RedirectAction['response_code']): number => {
    const head = requestHead('GET /');
    return routeOf(head, [{ match: { prefix: '/' }, redirect: { response_code } }]).redirectStatus;
  };
  t.equal(status(), 301);
  t.equal(status('FOUND'), 302);
  t.equal(status('SEE_OTHER'), 303);
  t.equal(status('TEMPORARY_REDIRECT'), 307);
  t.equal(status('PERMANENT_REDIRECT'), 308);
});

t.test('direct responses have precomputed bodies', async (t) => {
  const head = requestHead('GET /');
  const direct = (body: object, config: RouteConfiguration = {}): Route<string> =>
    routeOf(head, [{ match: { prefix: '/' }, direct_response: { status: 418, body } }], {}, config);
  t.equal(direct({ inline_string: 'é' }).kind, RouteKind.DirectResponse);
  t.equal(direct({ inline_string: 'é' }).directStatus, 418);
  t.same([...direct({ inline_string: 'é' }).directBody], [0xc3, 0xa9]);
  t.same([...direct({ inline_bytes: 'AP8=' }).directBody], [0, 255]);
  const filename = join(t.testdir({ body: 'from a file' }), 'body');
  t.equal(Buffer.from(direct({ filename }).directBody).toString(), 'from a file');
  t.throws(() => direct({ inline_string: 'x'.repeat(4097) }), { code: 'CONFIG_INVALID' });
  t.equal(
    direct({ inline_string: 'x'.repeat(5000) }, { max_direct_response_body_size_bytes: 5000 }).directBody.length,
    5000,
  );
});

t.test('header mutations: the most general level wins, or the most specific when configured', async (t) => {
  const set = (value: string): object => ({
    request_headers_to_add: [{ header: { key: 'x', value }, append_action: 'OVERWRITE_IF_EXISTS_OR_ADD' }],
    response_headers_to_add: [{ header: { key: 'y', value } }],
  });
  const weighted_clusters = { clusters: [{ name: 'a', weight: 1, ...set('cluster') }] };
  const result = (wins: boolean): [string[], string[]] => {
    const head = requestHead('GET /');
    const response = responseHead(200);
    const config = { ...set('config'), most_specific_header_mutations_wins: wins };
    const routes = [{ match: { prefix: '/' }, route: { weighted_clusters }, ...set('route') }];
    const route = routeOf(head, routes, set('host'), config);
    route.finalizeRequest(head, new StreamInfo());
    route.finalizeResponse(response, new StreamInfo());
    return [valuesOf(head, 'x'), valuesOf(response, 'y')];
  };
  t.same(result(false), [['config'], ['cluster', 'route', 'host', 'config']]);
  t.same(result(true), [['route'], ['cluster', 'config', 'host', 'route']], 'those of a weighted cluster come first');
});

t.test('response headers may use the request, although it arrived in an earlier turn', async (t) => {
  const head = requestHead('GET /', 'x-id: 42');
  const info = new StreamInfo();
  info.requestHeaders = head;
  const response_headers_to_add = [{ header: { key: 'x-was', value: '%REQ(x-id)%' } }];
  const route = routeOf(head, [{ match: { prefix: '/' }, route: { cluster: 'a' }, response_headers_to_add }]);
  route.finalizeRequest(head, info);
  head.memory.endTurn();
  head.memory.bytes.fill(0, 0, head.memory.receiveBytes);
  head.memory.bytes.fill(0, head.memory.scratch(1024), head.memory.scratch(1024));
  const response = responseHead(200);
  route.finalizeResponse(response, info);
  t.same(valuesOf(response, 'x-was'), ['42']);
  head.clear();
});

t.test('a weighted cluster rewrites the host before its route does', async (t) => {
  const weighted_clusters = {
    clusters: [
      { name: 'a', weight: 1, host_rewrite_literal: 'a.local' },
      { name: 'b', weight: 1 },
    ],
  };
  const seen: Record<string, string> = {};
  for (let random = 0; random < 2 ** 32; random += 2 ** 26) {
    for (const path of ['/', '/own']) {
      const head = requestHead(`GET ${path}`, 'host: old', 'x-new: new');
      const routes = [
        {
          match: { path: '/own' },
          route: { weighted_clusters, host_rewrite_header: 'x-new', append_x_forwarded_host: true },
        },
        { match: { prefix: '/' }, route: { weighted_clusters, append_x_forwarded_host: true } },
      ];
      const route = routeOf(head, routes, {}, {}, {}, random);
      route.applyRewrites(head);
      const names = ['host', 'x-envoy-original-host', 'x-forwarded-host'];
      seen[`${path} ${route.cluster!}`] = names.flatMap((name) => valuesOf(head, name)).join(' ');
    }
  }
  // As in Envoy, neither field records the host that the cluster replaces.
  t.same(seen, { '/ a': 'a.local', '/ b': 'old', '/own a': 'new a.local a.local', '/own b': 'new old old' });
});

t.test('mutations come before rewrites, and see the original request', async (t) => {
  const head = requestHead('GET /a', 'host: old');
  const info = new StreamInfo();
  info.requestHeaders = head;
  const routes = [
    {
      match: { prefix: '/a' },
      route: { cluster: 'a', prefix_rewrite: '/b', host_rewrite_header: 'x-new' },
      request_headers_to_add: [{ header: { key: 'x-new', value: 'from%REQ(:PATH)%' } }],
    },
  ];
  routeOf(head, routes).finalizeRequest(head, info);
  t.same(valuesOf(head, 'host'), ['from/a']);
  t.equal(head.pathText(), '/b');
});

t.test('typed_per_filter_config is passed to its filter, from general to specific', async (t) => {
  const config = (value: string): object => ({ typed_per_filter_config: { f: { '@type': 'x', value } } });
  const seen: unknown[] = [];
  const filter = {
    name: 'f',
    compileRouteConfig: (configs: readonly Any[], where: string): string => {
      seen.push(where);
      return configs.map((config) => config['value']).join();
    },
  };
  const other = { name: 'g', compileRouteConfig: (): string => 'never' };
  const head = requestHead('GET /');
  const routes = [{ match: { prefix: '/' }, route: { cluster: 'a' }, ...config('route') }];
  const route = routeOf(head, routes, config('host'), config('config'), { filters: [other, filter] });
  t.same(route.filterConfigs, [undefined, 'config,host,route']);
  t.ok(seen.includes('virtual_hosts[0].routes[0].typed_per_filter_config.f'));
});

t.test('the position of route configurations does not depend on earlier virtual hosts', async (t) => {
  const places: string[] = [];
  const filter = {
    name: 'f',
    compileRouteConfig: (_configs: readonly Any[], _where: string, _runtime: unknown, place: string) =>
      void places.push(place),
  };
  const said = { typed_per_filter_config: { f: { '@type': 'x' } } };
  const host = (name: string, more: object) => {
    const routes = [{ match: { prefix: '/' }, route: { cluster: 'a' }, ...more }];
    return { name, domains: [`${name}.com`], routes };
  };
  const options = { filters: [filter], place: 'routes 1' };
  const build = (virtual_hosts: object[], more: object = {}) => {
    buildRouteTable({ virtual_hosts, ...more }, (name) => name, options);
    return places.splice(0);
  };
  const ofRoute = "routes 1 'v'.routes[0].typed_per_filter_config.f";
  t.strictSame(build([host('v', said)]), [ofRoute]);
  t.strictSame(build([host('u', {}), host('v', said)]), [ofRoute]);
  const [ofHost] = build([{ ...host('v', {}), ...said }]);
  t.equal(ofHost, "routes 1 'v'.typed_per_filter_config.f");
  const [ofAll, same] = build([host('u', {}), host('v', {})], said);
  t.equal(ofAll, 'routes 1 typed_per_filter_config.f');
  t.equal(same, ofAll);
});

t.test(
  'a field of virtual host or route action configures its filter where typed_per_filter_config does not',
  async (t) => {
    const filter = {
      name: 'f',
      routeField: { name: 'cors' as const, type: 'of-field' },
      compileRouteConfig: (configs: readonly Any[], where: string): string =>
        `${configs.map(({ '@type': type, max_age }) => `${type} ${max_age}`)} at ${where}`,
    };
    const deaf = { name: 'g', compileRouteConfig: (): string => 'never' };
    const typed = (max_age: string): object => ({ typed_per_filter_config: { f: { '@type': 'typed', max_age } } });
    const weights = (more: object): object => ({
      weighted_clusters: { clusters: [{ name: 'b', weight: 1, ...more }] },
    });
    const routes = [
      { match: { path: '/field' }, route: { cluster: 'a', cors: { max_age: 'action' } } },
      { match: { path: '/host' }, route: { cluster: 'a' } },
      { match: { path: '/typed' }, route: { cluster: 'a', cors: { max_age: 'action' } }, ...typed('route') },
      { match: { path: '/weight' }, route: { ...weights({}), cors: { max_age: 'action' } } },
      { match: { path: '/typed-weight' }, route: { ...weights(typed('weight')), cors: { max_age: 'action' } } },
    ];
    const said = (path: string, filters: readonly RouteFilter[] = [filter], config: object = {}) =>
      routeOf(requestHead(`GET ${path}`), routes, { cors: { max_age: 'host' } }, config, { filters }).filterConfigs;
    const host = 'of-field host';
    t.same(said('/field'), [`${host},of-field action at virtual_hosts[0].routes[0].route.cors`]);
    t.same(said('/host'), [`${host} at virtual_hosts[0].cors`]);
    t.same(said('/typed'), ['typed route at virtual_hosts[0].routes[2].typed_per_filter_config.f']);
    t.same(said('/weight'), [`${host},of-field action at virtual_hosts[0].routes[3].route.cors`]);
    const weight = 'virtual_hosts[0].routes[4].route.weighted_clusters.clusters[0]';
    t.same(said('/typed-weight'), [`typed weight at ${weight}.typed_per_filter_config.f`]);
    t.same(said('/field', [filter], typed('config')), ['typed config at typed_per_filter_config.f']);
    t.same(said('/field', [deaf, filter])[0], undefined);
    const wrapped = (fields: object): object => ({
      typed_per_filter_config: { f: { '@type': 'type.googleapis.com/envoy.config.route.v3.FilterConfig', ...fields } },
    });
    t.same(said('/host', [filter], wrapped({ config: {} })), [`${host} at virtual_hosts[0].cors`]);
    t.same(said('/host', [filter], wrapped({ disabled: true })), [FILTER_OFF]);
  },
);

t.test(
  'the most specific level disables or enables a filter, and the configuration of a level that disables it is ignored',
  async (t) => {
    const type = 'type.googleapis.com/envoy.config.route.v3.FilterConfig';
    const config = (fields: object): object => ({ typed_per_filter_config: { f: { '@type': type, ...fields } } });
    const held = (value: string): object => ({ config: { '@type': 'x', value } });
    const filter = {
      name: 'f',
      compileRouteConfig: (configs: readonly Any[], where: string): string =>
        `${configs.map(({ value }) => value).join()} at ${where}`,
    };
    const head = requestHead('GET /');
    const configOn = (route: object, host: object, all: object): unknown => {
      const routes = [{ match: { prefix: '/' }, route: { cluster: 'a' }, ...route }];
      return routeOf(head, routes, host, all, { filters: [filter] }).filterConfigs[0];
    };
    t.equal(configOn({}, {}, config({ disabled: true })), FILTER_OFF);
    t.equal(configOn({}, config({ config: {} }), config({ disabled: true })), FILTER_ON);
    t.equal(configOn(config({ disabled: true }), {}, config(held('all'))), FILTER_OFF);
    const at = 'at virtual_hosts[0].routes[0].typed_per_filter_config.f.config';
    t.equal(configOn(config(held('route')), config(held('host')), {}), `host,route ${at}`);
    t.equal(configOn(config(held('route')), config({ ...held('host'), disabled: true }), {}), `route ${at}`);
    t.equal(
      configOn(config({ config: {} }), config(held('host')), {}),
      'host at virtual_hosts[0].typed_per_filter_config.f.config',
    );

    const last = { ...filter, isTerminal: true };
    const routes = [{ match: { prefix: '/' }, route: { cluster: 'a' }, ...config({ disabled: true }) }];
    t.throws(() => routeOf(head, routes, {}, {}, { filters: [last] }), {
      code: 'CONFIG_INVALID',
      message: "'f' ends the chain and cannot be disabled",
      where: 'virtual_hosts[0].routes[0].typed_per_filter_config.f.disabled',
    });
  },
);
