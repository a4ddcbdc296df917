// A configuration is obeyed, or refused before anything listens: by name, file, line and column.

import t from 'tap';
import { bootstrap, type Config, httpListener, startBaton, staticCluster, type Teardown } from '../harness/index.js';
import { answering, managerOf, routeConfig, routeTo } from './proxy.js';

t.test('unimplemented fields are refused by name and position', async (t) => {
  const text = `admin:
  address: { socket_address: { address: 127.0.0.1, port_value: 0 } }
static_resources:
  listeners:
    - name: web
      address: { socket_address: { address: 127.0.0.1, port_value: 0 } }
      filter_chains:
        - filters:
            - name: http
              typed_config:
                "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
                stat_prefix: web
                access_log_flush_interval: 1s
                route_config:
                  virtual_hosts:
                    - name: all
                      domains: ["*"]
                      routes:
                        - match: { prefix: / }
                          route:
                            cluster: host
                            hash_policy: [ { filter_state: { key: x } } ]
                http_filters:
                  - name: router
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
  clusters:
    - name: host
      lb_policy: CLUSTER_PROVIDED
`;
  const { stderr, code } = await refused(t, text);
  t.equal(code, 1);
  const expected: [string, number, number][] = [
    ['static_resources.listeners[0].filter_chains[0].filters[0].typed_config.access_log_flush_interval', 13, 17],
    ['virtual_hosts[0].routes[0].route.hash_policy[0].filter_state', 22, 46],
    ['static_resources.clusters[0].lb_policy', 29, 18],
  ];
  for (const [path, line, column] of expected) {
    const found = stderr.split('\n').find((each) => each.includes(`${path}: `));
    t.ok(found?.includes(`config.yaml:${line}:${column}: `), `${path} at ${line}:${column}: ${found}`);
  }
  t.notMatch(stderr, /starting main dispatch loop/, 'nothing was started');
});

t.test('all errors are reported at once, each with its cause and position', async (t) => {
  const manager = (more: Config) => managerOf([answering({ prefix: '/' }, 'ok')], more);
  const route = (more: Config) => managerOf([{ match: { prefix: '/' }, ...more }]);
  const cases: [string, Config, RegExp][] = [
    ['an unknown field', manager({ stat_prefx: 'a' }), /stat_prefx.*stat_prefix/],
    [
      'an unknown extension',
      manager({ http_filters: [filter('modules', 'dynamic_modules.v3.DynamicModuleFilter')] }),
      /http_filters\[0\]/,
    ],
    ['an unknown cluster', managerOf([routeTo({ prefix: '/' }, 'hots')]), /unknown cluster 'hots'.*host/],
    [
      'a reference to a missing regex group',
      route({ route: { cluster: 'host', regex_rewrite: { pattern: { regex: 'a' }, substitution: '\\9' } } }),
      /regex_rewrite\.substitution: .*\\9/,
    ],
    ['a wrong regex', managerOf([answering({ safe_regex: { regex: '(' } }, 'a')]), /regex/],
    ['a look-ahead', managerOf([answering({ safe_regex: { regex: '(?=a)' } }, 'a')]), /regex/],
    ['a route without action', route({}), /routes\[0\]/],
    ['an invalid status', route({ direct_response: { status: 99 } }), /direct_response\.status/],
    [
      'an invalid cookie name',
      route({ route: { cluster: 'host', hash_policy: [{ cookie: { name: 'a;b' } }] } }),
      /hash_policy\[0\]\.cookie\.name: 'a;b' is not a valid cookie name/,
    ],
    ['a negative timeout', route({ route: { cluster: 'host', timeout: '-1s' } }), /timeout/],
    ['no time', route({ route: { cluster: 'host', timeout: 'soon' } }), /timeout/],
    ['two virtual hosts for one domain', { route_config: routeConfig([host('a', '*'), host('b', '*')]) }, /domains/],
    ['weights of 0', route({ route: { weighted_clusters: { clusters: [{ name: 'host', weight: 0 }] } } }), /weight/],
    ['an invalid header name in a format', manager({ access_log: [log('%REQ(a b)%')] }), /REQ/],
    ['an unknown operator', manager({ access_log: [log('%NONSENSE%')] }), /NONSENSE/],
    ['a header with a line end', route({ direct_response: { status: 200 }, ...adding('a\nb') }), /header/],
    ['removal of a pseudo-header', route({ direct_response: { status: 200 }, ...removing(':path') }), /:path/],
    [
      'an environment variable with a line break',
      route({ direct_response: { status: 200 }, ...adding('a', '%ENVIRONMENT(TWO_LINES)%') }),
      /response_headers_to_add\[0\]\.header\.value: .*%ENVIRONMENT\(TWO_LINES\)% has a value with a line break/,
    ],
    ['a value of an unknown operator', route({ direct_response: { status: 200 }, ...adding('a', '%NO%') }), /%NO%/],
    ['an unknown retry condition', managerOf([routeTo({ prefix: '/' }, 'host', retrying('6xx'))]), /6xx/],
    [
      'host selection attempts without a retry host predicate',
      managerOf([routeTo({ prefix: '/' }, 'host', retrying('5xx', { host_selection_retry_max_attempts: '3' }))]),
      /host_selection_retry_max_attempts: .*retry_host_predicate/,
    ],
    [
      'errors in two routes',
      managerOf([routeTo({ prefix: '/retried' }, 'host', retrying('6xx')), bodyFrom('/none')]),
      /routes\[0\].*6xx.*\n.*routes\[1\].*\/none/,
    ],
    [
      'errors in several headers',
      route({
        direct_response: { status: 200 },
        request_headers_to_add: [
          { header: { key: 'a', value: '%NO1%' } },
          { header: { key: 'b', value: '%NO2%%NO3%' } },
        ],
        response_headers_to_add: [{ header: { key: 'c', value: '%NO4%' } }],
      }),
      /request_headers_to_add\[0\].*NO1(.|\n)*_add\[1\].*NO2(.|\n)*_add\[1\].*NO3(.|\n)*response_headers_to_add\[0\].*NO4/,
    ],
    ['a body from a missing file', managerOf([bodyFrom('/none')]), /\/none/],
    ['a body that is too large', route({ direct_response: { status: 200, body: large() } }), /4096/],
    [
      'a header section limit that is too large',
      manager({ max_request_headers_kb: 8193 }),
      /max_request_headers_kb: .*8192/,
    ],
    ['cache_time without pass-through mode', health({ cache_time: '1s' }), /cache_time: .*pass_through_mode/],
    [
      'minimum percentages in pass-through mode',
      health({ pass_through_mode: true, ...shares(50) }),
      /percentages: .*host/,
    ],
    ['a percentage above 100', health(shares(101)), /cluster_min_healthy_percentages.*100/],
    ['a health check without a mode', health({ pass_through_mode: undefined }), /pass_through_mode/],
    ['a health check with an invalid regex', health({ headers: [regexHeader('(')] }), /headers\[0\].*regex/],
    [
      'a static tap',
      manager({ http_filters: [staticTap(), filter('router', 'router.v3.Router')] }),
      /static_config.*POST \/tap/,
    ],
    [
      'two ways to take the port from a host',
      manager({ strip_any_host_port: true, strip_matching_host_port: true }),
      /strip_matching_host_port: strip_any_host_port/,
    ],
    ['an upgrade of no type', manager(upgrading('')), /upgrade_configs\[0\].*needs a type/],
    ['an upgrade to HTTP/2', manager(upgrading('h2c')), /upgrade_configs\[0\].*'h2c'.*HTTP\/1.1/],
    [
      'an added connection field',
      route({ direct_response: { status: 200 }, ...adding('Transfer-Encoding', 'gzip') }),
      /'Transfer-Encoding' cannot be set.*leave it out/,
    ],
    [
      'an added content-length',
      route({ direct_response: { status: 200 }, ...adding('Content-Length', '5') }),
      /'Content-Length' cannot/,
    ],
    [
      'an added upgrade field',
      route({ direct_response: { status: 200 }, ...adding('upgrade', 'a') }),
      /'upgrade' cannot be set/,
    ],
    [
      'a name with a space',
      route({ direct_response: { status: 200 }, ...adding('x y') }),
      /header\.key: 'x y' is not a valid header name/,
    ],
    [
      'a name with a colon',
      route({ direct_response: { status: 200 }, ...adding('x:') }),
      /header\.key: 'x:' is not a valid header name/,
    ],
    [
      'an invalid header name',
      route({ direct_response: { status: 200 }, ...removing('x(') }),
      /remove\[0\]: 'x\(' is not a valid header name/,
    ],
    [
      'a duplicate upgrade',
      manager(upgrading('websocket', 'WebSocket')),
      /upgrade_configs\[1\].*'websocket' occurs twice/,
    ],
    [
      'a duplicate upgrade in a route',
      managerOf([routeTo({ prefix: '/' }, 'host', upgrading('a', 'A'))]),
      /route\.upgrade_configs\[1\].*'a' occurs twice/,
    ],
    [
      'a cluster header that is not a field name',
      route({ route: { cluster_header: ':scheme' } }),
      /:scheme.*:authority/,
    ],
    [
      'a scheme with a line break',
      route({ redirect: { scheme_redirect: 'http\r\nx: 1' } }),
      /redirect\.scheme_redirect: it must not contain a control character/,
    ],
    [
      'an invalid port',
      route({ redirect: { port_redirect: 65_536 } }),
      /redirect\.port_redirect: 65536 is not a valid port/,
    ],
    [
      'a new prefix with a space',
      managerOf([routeTo({ prefix: '/' }, 'host', { prefix_rewrite: '/a b' })]),
      /route\.prefix_rewrite: '\/a b' has a character that a request path cannot have.*%20/,
    ],
    [
      'a substitution with a fragment',
      route({ route: { cluster: 'host', regex_rewrite: { pattern: { regex: 'a' }, substitution: '#' } } }),
      /regex_rewrite\.substitution: '#' has a character/,
    ],
    ['no terminal filter', manager({ http_filters: [] }), /http_filters/],
  ];
  const listeners = cases.map(([, config], index) => httpListener(`listener-${index}`, 0, config));
  const { stderr, code } = await refused(t, bootstrap({ listeners, clusters: [staticCluster('host', 1)] }));
  t.equal(code, 1);
  const found = stderr.split('\n');
  cases.forEach(([what, , pattern], index) => {
    const place = new RegExp(`config\\.yaml:\\d+:\\d+: static_resources\\.listeners\\[${index}\\]\\.`);
    t.match(found.filter((each) => place.test(each)).join('\n'), pattern, what);
  });
});

t.test('--mode validate reports the same errors without serving', async (t) => {
  const good = bootstrap({
    listeners: [httpListener('web', 0, managerOf([answering({ prefix: '/' }, 'ok')]))],
    clusters: [],
  });
  const baton = await startBaton(t, { config: good, args: ['--mode', 'validate'], wait: 'spawned' });
  t.match(await baton.exited, { code: 0 });
  t.match(baton.stdout, /^configuration '.*config\.yaml' OK\n$/);
  const bad = bootstrap({
    listeners: [httpListener('web', 0, managerOf([], { access_log_flush_interval: '1s' }))],
    clusters: [],
  });
  const { code, stderr } = await refused(t, bad, ['--mode', 'validate']);
  t.equal(code, 1);
  t.match(stderr, /access_log_flush_interval/);
});

async function refused(
  t: Teardown,
  config: Config | string,
  args: string[] = [],
): Promise<{ code: number | null; stderr: string }> {
  const env = { TWO_LINES: 'a\nb' };
  const baton = await startBaton(t, { config, args, env, wait: 'spawned' });
  // A configuration that serves by mistake would run forever.
  const timer = setTimeout(() => baton.child.kill('SIGKILL'), 20_000);
  const { code } = await baton.exited;
  clearTimeout(timer);
  return { code, stderr: baton.stderr };
}

function filter(name: string, type: string): Config {
  return { name, typed_config: { '@type': `type.googleapis.com/envoy.extensions.filters.http.${type}` } };
}

function health(more: Config): Config {
  const { typed_config, ...rest } = filter('health', 'health_check.v3.HealthCheck');
  const router = filter('router', 'router.v3.Router');
  const config = { ...(typed_config as Config), pass_through_mode: false, ...more };
  return managerOf([answering({ prefix: '/' }, 'ok')], { http_filters: [{ ...rest, typed_config: config }, router] });
}

function staticTap(): Config {
  const { typed_config, ...rest } = filter('tap', 'tap.v3.Tap');
  const output_config = { sinks: [{ file_per_tap: { path_prefix: 'a' } }] };
  const common_config = { static_config: { match: { any_match: true }, output_config } };
  return { ...rest, typed_config: { ...(typed_config as Config), common_config } };
}

function retrying(retry_on: string, more: Config = {}): Config {
  return { retry_policy: { retry_on, ...more } };
}

function upgrading(...types: string[]): Config {
  return { upgrade_configs: types.map((upgrade_type) => ({ upgrade_type })) };
}

function bodyFrom(filename: string): Config {
  return { match: { prefix: '/' }, direct_response: { status: 200, body: { filename } } };
}

function shares(value: number): Config {
  return { cluster_min_healthy_percentages: { host: { value } } };
}

function regexHeader(regex: string): Config {
  return { name: ':path', string_match: { safe_regex: { regex } } };
}

function host(name: string, domain: string): Config {
  return { name, domains: [domain], routes: [answering({ prefix: '/' }, name)] };
}

function log(format: string): Config {
  return {
    name: 'log',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.access_loggers.stream.v3.StdoutAccessLog',
      log_format: { text_format_source: { inline_string: format } },
    },
  };
}

function adding(key: string, value = 'a'): Config {
  return { response_headers_to_add: [{ header: { key, value } }] };
}

function removing(name: string): Config {
  return { request_headers_to_remove: [name] };
}

function large(): Config {
  return { inline_string: 'x'.repeat(4097) };
}
