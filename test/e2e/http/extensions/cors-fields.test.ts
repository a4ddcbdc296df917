// The `cors` fields of virtual hosts and route actions, which predate typed_per_filter_config: they configure the CORS filter
// where that does not. Invalid policies are refused at every level.

import t from 'tap';
import { type Config, startBaton, startUpstream, staticCluster } from '../../harness/index.js';
import { managerOf, routeConfig, routeTo, startProxy } from '../proxy.js';
import { allowing, CORS_CHAIN, CORS_FILTER, corsHeaders, corsPolicy, preflight, share } from './cors.js';

const PAGE = 'https://page.example';
const upstream = await startUpstream(t, (_request, answer) => void answer.end('from the host'));

t.test('the policy of a route action overrides that of its virtual host, field by field', async (t) => {
  const own = { max_age: '1', allow_methods: 'PATCH' };
  const routes = [
    routeTo({ prefix: '/action' }, 'host', { cors: own }),
    routeTo({ prefix: '/off' }, 'host', { cors: { filter_enabled: share(0) } }),
    routeTo({ prefix: '/typed' }, 'host', { cors: own }, corsPolicy(allowing(PAGE))),
    { match: { prefix: '/weighted' }, route: { weighted_clusters: weights(corsPolicy({})), cors: own } },
    { match: { prefix: '/plain-weights' }, route: { weighted_clusters: weights({}), cors: own } },
    routeTo({ prefix: '/' }, 'host'),
  ];
  const host = { ...allowing(PAGE), max_age: '2', allow_headers: 'x-a', allow_credentials: true };
  const route_config = routeConfig([{ name: 'all', domains: ['*'], routes, cors: host }]);
  const [filter, router] = CORS_CHAIN['http_filters'] as Config[];
  const { baton, on } = await startProxy(t, {
    listeners: {
      main: { route_config, ...CORS_CHAIN },
      none: { route_config, http_filters: [router] },
      disabled: { route_config, http_filters: [{ ...filter, disabled: true }, router] },
      typed: {
        route_config: { ...route_config, ...corsPolicy({ max_age: '3', ...allowing('http://other') }) },
        ...CORS_CHAIN,
      },
    },
    clusters: [staticCluster('host', upstream.port)],
  });
  const asked = async (path: string, listener = 'main', origin = PAGE) => {
    const answer = await on(listener, path, preflight(origin));
    if (answer.body !== '') return answer.body;
    return corsHeaders(answer).map(([name, value]) => `${name.replace('access-control-', '')}: ${value}`);
  };
  const ofHost = [`allow-origin: ${PAGE}`, 'allow-credentials: true', 'allow-headers: x-a', 'max-age: 2'];
  const ofAction = [...ofHost.slice(0, 2), 'allow-methods: PATCH', 'allow-headers: x-a', 'max-age: 1'];
  t.same(await asked('/'), ofHost);
  t.same(await asked('/action'), ofAction);
  t.same(await asked('/plain-weights'), ofAction);
  t.same(await asked('/off'), 'from the host');
  t.same(await asked('/typed'), [`allow-origin: ${PAGE}`], 'typed_per_filter_config replaces the cors fields');
  t.same(await asked('/weighted'), 'from the host', 'an empty policy allows no origin');
  const { headers } = await on('main', '/action', { headers: { origin: PAGE } });
  t.match(headers, { 'access-control-allow-origin': PAGE, 'access-control-allow-credentials': 'true' });
  await baton.waitForStats({ 'http.main.cors.origin_valid': 5, 'http.main.cors.origin_invalid': 1 });

  for (const listener of ['none', 'disabled', 'typed']) t.equal(await asked('/action', listener), 'from the host');
  t.same(await asked('/typed', 'disabled'), [`allow-origin: ${PAGE}`], 'typed_per_filter_config enables the filter');
  t.same(await asked('/action', 'typed', 'http://other'), ['allow-origin: http://other', 'max-age: 3']);
  const warning = (listener: number, text: string) =>
    new RegExp(
      `config\\.yaml:\\d+:\\d+: static_resources\\.listeners\\[${listener}\\].*virtual_hosts\\[0\\]\\.cors: ${text}`,
    );
  t.notMatch(baton.stderr, warning(0, 'it has no effect'));
  t.match(baton.stderr, warning(1, "it has no effect: the chain has no filter 'envoy\\.filters\\.http\\.cors'"));
  t.match(baton.stderr, warning(3, "it has no effect: typed_per_filter_config configures the filter 'cors' instead"));
  t.match(baton.stderr, /field 'cors' of envoy\.config\.route\.v3\.VirtualHost is deprecated/);
  t.equal(await baton.stat('runtime.deprecated_feature_use'), 4 * 6);
});

t.test('invalid policies are refused by name and position', async (t) => {
  const text = `static_resources:
  listeners:
    - name: web
      address: { socket_address: { address: 127.0.0.1, port_value: 0 } }
      filter_chains:
        - filters:
            - name: http
              typed_config:
                "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
                stat_prefix: web
                route_config:
                  virtual_hosts:
                    - name: all
                      domains: ["*"]
                      cors:
                        allow_origin: ["*"]
                        max_age: "1\\n2"
                      typed_per_filter_config:
                        cors:
                          "@type": type.googleapis.com/envoy.extensions.filters.http.cors.v3.CorsPolicy
                          allow_method: GET
                          allow_origin_string_match: [{ safe_regex: { regex: "(" } }]
                          expose_headers: "a\\r"
                      routes:
                        - match: { prefix: / }
                          route:
                            cluster: host
                            cors: { allow_origin_string_match: [{ safe_regex: { regex: "(?=a)" } }, {}] }
                          typed_per_filter_config:
                            cors: { "@type": type.googleapis.com/envoy.extensions.filters.http.cors.v3.Cors }
                http_filters:
                  - name: cors
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.filters.http.cors.v3.Cors
                  - name: router
                    typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }
  clusters: [{ name: host, load_assignment: { cluster_name: host } }]
`;
  const baton = await startBaton(t, { config: text, args: ['--mode', 'validate'], wait: 'spawned' });
  t.equal((await baton.exited).code, 1);
  const expected: [line: number, column: number, path: string, message: string][] = [
    [16, 25, 'cors.allow_origin', 'use allow_origin_string_match'],
    [17, 34, 'cors.max_age', 'it must not contain a control character'],
    [21, 27, 'typed_per_filter_config.cors.allow_method', "did you mean 'allow_methods'"],
    [22, 78, 'allow_origin_string_match[0].safe_regex.regex', 'invalid regular expression'],
    [23, 43, 'typed_per_filter_config.cors.expose_headers', 'it must not contain a control character'],
    [28, 88, 'route.cors.allow_origin_string_match[0].safe_regex.regex', 'invalid regular expression'],
    [28, 101, 'route.cors.allow_origin_string_match[1]', 'one of'],
    [
      30,
      46,
      'routes[0].typed_per_filter_config.cors.@type',
      "it configures the filter 'envoy.filters.http.cors' itself",
    ],
  ];
  for (const [line, column, path, message] of expected) {
    const found = baton.stderr.split('\n').find((each) => each.includes(`${path}: `));
    t.ok(found?.includes(`config.yaml:${line}:${column}: `), `${path} at ${line}:${column}: ${found}`);
    t.ok(found?.includes(message), message);
  }
});

t.test('a route configuration for a filter name that is not in the chain causes a warning', async (t) => {
  const route = routeTo({ prefix: '/' }, 'host', {}, corsPolicy(allowing(PAGE)));
  const [, router] = CORS_CHAIN['http_filters'] as Config[];
  const { baton, get } = await startProxy(t, {
    listeners: { main: managerOf([route], { http_filters: [{ ...CORS_FILTER, name: 'pages' }, router] }) },
    clusters: [staticCluster('host', upstream.port)],
  });
  t.equal((await get('/', preflight(PAGE))).body, 'from the host');
  t.match(baton.stderr, /it has no effect: no filter of the chain has the name 'cors'; did you mean 'pages'\?/);
});

function weights(more: Config): Config {
  return { clusters: [{ name: 'host', weight: 1, ...more }] };
}
