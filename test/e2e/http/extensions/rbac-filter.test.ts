// envoy.filters.http.rbac: access by request, client identity, and address.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import {
  bootstrap,
  type Config,
  fileAccessLog,
  type HttpRequestOptions,
  httpListener,
  httpRequest,
  ROUTER_FILTER,
  rawExchange,
  startBaton,
  tempDir,
  waitFor,
} from '../../harness/index.js';
import { answering, managerOf, routeConfig, startProxy } from '../proxy.js';

const TYPE = 'type.googleapis.com/envoy.extensions.filters.http.rbac.v3.';
const ANY = { any: true };
const path = (matcher: Config) => ({ url_path: { path: matcher } });
const header = (name: string, exact: string) => ({ header: { name, string_match: { exact } } });
const cidr = (address_prefix: string, prefix_len: number) => ({ address_prefix, prefix_len });
const policy = (permission: Config, principal: Config = ANY) => ({
  permissions: [permission],
  principals: [principal],
});

/** Returns a manager that answers the requests that the filter admits. */
function guarded(filter: Config, routes: Config[] = [], more: Config = {}): Config {
  const rbac = { name: 'rbac', typed_config: { '@type': `${TYPE}RBAC`, ...filter } };
  const chain = { http_filters: [rbac, ROUTER_FILTER], ...more };
  return managerOf([...routes, answering({ prefix: '/' }, 'in')], chain);
}
const rules = (action: string, policies: Config) => ({ rules: { action, policies } });
/** Returns the configuration of a route. */
const perRoute = (rbac: Config | undefined) => ({
  typed_per_filter_config: { rbac: { '@type': `${TYPE}RBACPerRoute`, ...(rbac && { rbac }) } },
});

const log = join(tempDir(t), 'access.log');
const details = () => (existsSync(log) ? readFileSync(log, 'utf8').split('\n').slice(0, -1) : []);

/** One condition per route: requests are for `/<index>…`. */
const CONDITIONS: readonly (readonly [Config, yes: string[], no: string[]])[] = [
  [path({ prefix: '/0/a' }), ['/0/a', '/0/ab?c'], ['/0/b', '/0/?/0/a']],
  [path({ exact: '/1' }), ['/1', '/1?a', '/1?/b'], ['/1/']],
  [path({ safe_regex: { regex: '/2/[0-9]+' } }), ['/2/17?x=1'], ['/2/17/']],
  [{ not_rule: path({ suffix: '.php' }) }, ['/3/a'], ['/3/a.php', '/3/a.php?b']],
  [{ and_rules: { rules: [path({ contains: 'a' }), path({ contains: 'b' })] } }, ['/4/ab'], ['/4/a', '/4/b?a']],
  [{ or_rules: { rules: [path({ contains: 'a' }), path({ contains: 'b' })] } }, ['/5/a', '/5/b'], ['/5/c?a']],
  [{ header: { name: ':path', string_match: { suffix: 'q' } } }, ['/6?q'], ['/6?r']],
  [{ destination_ip: cidr('127.0.0.0', 8) }, ['/7'], []],
  [{ destination_ip: cidr('10.0.0.0', 8) }, [], ['/8']],
  [{ destination_port_range: { start: 1, end: 65535 } }, ['/9'], []],
  [{ destination_port_range: { start: 1, end: 2 } }, [], ['/10']],
];

const { baton, on } = await startProxy(t, {
  args: ['-l', 'warning', '--file-flush-interval-msec', '20'],
  listeners: {
    allow: guarded(
      rules('ALLOW', {
        readers: policy(header(':method', 'GET'), { not_id: header('x-role', 'nobody') }),
        'the admins': policy(ANY, { and_ids: { ids: [header('x-role', 'admin'), header('x-team', 'ops')] } }),
      }),
      [
        answering({ prefix: '/open' }, 'open', perRoute(undefined)),
        answering({ prefix: '/closed' }, 'closed', perRoute(rules('ALLOW', {}))),
      ],
      { access_log: [fileAccessLog(log, '%RESPONSE_CODE% %RESPONSE_CODE_DETAILS% %RESPONSE_FLAGS%\n')] },
    ),
    deny: guarded(
      rules('DENY', { 'bad  bots': policy(ANY, { or_ids: { ids: [header('x-bot', '1'), header('x-bot', '2')] } }) }),
      [],
      { access_log: [fileAccessLog(log, '%RESPONSE_CODE% %RESPONSE_CODE_DETAILS% %RESPONSE_FLAGS%\n')] },
    ),
    conditions: guarded(
      {},
      CONDITIONS.map(([condition], index) =>
        answering({ path_separated_prefix: `/${index}` }, 'in', perRoute(rules('ALLOW', { only: policy(condition) }))),
      ),
    ),
    addresses: guarded(
      {},
      (['remote_ip', 'direct_remote_ip', 'source_ip'] as const).map((field) =>
        answering(
          { prefix: `/${field}` },
          'in',
          perRoute(rules('ALLOW', { only: policy(ANY, { [field]: cidr('192.0.2.0', 24) }) })),
        ),
      ),
      { use_remote_address: false, xff_num_trusted_hops: 0 },
    ),
    shadow: guarded({
      rules_stat_prefix: 'real',
      shadow_rules_stat_prefix: 'planned.',
      ...rules('DENY', {}),
      shadow_rules: { policies: { some: policy(path({ prefix: '/in' })) } },
    }),
    planned: guarded({ shadow_rules: { policies: {} } }),
    levels: {
      ...guarded(rules('ALLOW', {})),
      route_config: routeConfig([
        {
          name: 'all',
          domains: ['*'],
          routes: [
            answering(
              { prefix: '/route' },
              'route',
              perRoute(rules('ALLOW', { get: policy(header(':method', 'GET')) })),
            ),
            answering({ prefix: '/' }, 'host'),
          ],
          ...perRoute(rules('ALLOW', { put: policy(header(':method', 'PUT')) })),
        },
      ]),
    },
  },
  extra: {
    layered_runtime: {
      layers: [
        { name: 'a', static_layer: { 'envoy.deprecated_features:envoy.config.rbac.v3.Principal.source_ip': true } },
      ],
    },
  },
});
const ask = async (listener: string, target: string, options?: HttpRequestOptions) =>
  (await on(listener, target, options)).status;

t.test('with ALLOW only requests that match a policy are admitted', async (t) => {
  t.equal(await ask('allow', '/'), 200);
  t.equal(await ask('allow', '/', { headers: { 'x-role': 'nobody' } }), 403);
  t.equal(await ask('allow', '/', { method: 'PUT', headers: { 'x-role': 'admin', 'x-team': 'ops' } }), 200);
  const refused = await on('allow', '/', { method: 'PUT', headers: { 'x-role': 'admin' } });
  t.match(refused, { status: 403, body: 'RBAC: access denied' });
  t.same(await baton.stats('http.allow.rbac.'), { allowed: 2, denied: 2, shadow_allowed: 0, shadow_denied: 0 });
  await waitFor(() => details().length === 4, { what: 'the log' });
  t.equal(details()[3], '403 rbac_access_denied_matched_policy[none] -');
});

t.test('with DENY all other requests are admitted, and the log names the policy', async (t) => {
  const before = details().length;
  t.equal(await ask('deny', '/'), 200);
  t.equal(await ask('deny', '/', { headers: { 'x-bot': '2' } }), 403);
  await waitFor(() => details().length === before + 2, { what: 'the log' });
  t.equal(details().at(-1), '403 rbac_access_denied_matched_policy[bad__bots] -');
});

t.test('gRPC requests are denied with a grpc-status', async (t) => {
  const { status, headers } = await on('deny', '/', {
    method: 'POST',
    headers: { 'x-bot': '1', 'content-type': 'application/grpc' },
  });
  t.match([status, headers['grpc-status'], headers['grpc-message']], [200, '7', 'RBAC: access denied']);
});

t.test('a route may have other rules, or none', async (t) => {
  t.equal(await ask('allow', '/open', { method: 'DELETE' }), 200);
  t.equal(await ask('allow', '/closed'), 403);
});

t.test('the rules of the most specific level replace all others', async (t) => {
  t.same([await ask('levels', '/'), await ask('levels', '/', { method: 'PUT' })], [403, 200]);
  t.same([await ask('levels', '/route'), await ask('levels', '/route', { method: 'PUT' })], [200, 403]);
});

t.test('each condition matches what it describes, and nothing else', async (t) => {
  for (const [, yes, no] of CONDITIONS) {
    for (const target of yes) t.equal(await ask('conditions', target), 200, target);
    for (const target of no) t.equal(await ask('conditions', target), 403, target);
  }
});

t.test('remote_ip is the address from x-forwarded-for, direct_remote_ip that of the peer', async (t) => {
  const headers = { 'x-forwarded-for': '192.0.2.7' };
  t.equal(await ask('addresses', '/remote_ip', { headers }), 200);
  t.equal(await ask('addresses', '/remote_ip', { headers: { 'x-forwarded-for': '198.51.100.1' } }), 403);
  t.equal(await ask('addresses', '/direct_remote_ip', { headers }), 403);
  t.equal(await ask('addresses', '/source_ip', { headers }), 403);
});

t.test('behind the PROXY protocol the source address is the one in the PROXY header', async (t) => {
  const listener = httpListener(
    'edge',
    0,
    guarded(
      rules('ALLOW', {
        source: policy(path({ exact: '/source' }), { source_ip: cidr('192.0.2.0', 24) }),
        direct: policy(path({ exact: '/direct' }), { direct_remote_ip: cidr('127.0.0.1', 32) }),
        port: policy({ destination_port: 443 }),
      }),
    ),
  );
  const message = 'type.googleapis.com/envoy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol';
  const proxies = [{ name: 'proxies', typed_config: { '@type': message } }];
  const baton = await startBaton(t, {
    args: ['-l', 'warning'],
    config: bootstrap({ listeners: [{ ...listener, listener_filters: proxies }], clusters: [] }),
  });
  const port = await baton.listenerPort('edge');
  const status = async (target: string, from: string, to = 80) => {
    const line = `PROXY TCP4 ${from} 198.51.100.2 4000 ${to}\r\n`;
    const head = `GET ${target} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`;
    return (await rawExchange(port, line + head)).text.slice(9, 12);
  };
  t.equal(await status('/source', '192.0.2.1'), '200');
  t.equal(await status('/source', '203.0.113.1'), '403');
  t.equal(await status('/direct', '203.0.113.1'), '200');
  t.equal(await status('/', '203.0.113.1', 443), '200');
  t.equal(await status('/', '203.0.113.1', 444), '403');
});

t.test('shadow rules are only counted, under their own prefixes', async (t) => {
  t.equal(await ask('shadow', '/in'), 200);
  t.equal(await ask('shadow', '/out'), 200);
  t.equal(await ask('shadow', '/out'), 200);
  t.same(await baton.stats('http.shadow.rbac.'), {
    'planned.shadow_allowed': 1,
    'planned.shadow_denied': 2,
    'real.allowed': 3,
    'real.denied': 0,
  });
  t.equal(await ask('planned', '/'), 200);
  t.same(await baton.stats('http.planned.rbac.'), { allowed: 0, denied: 0, shadow_allowed: 0, shadow_denied: 1 });
});

t.test('a Unix socket has neither address nor port', async (t) => {
  const directory = tempDir(t);
  const manager = guarded(
    rules('DENY', {
      any: policy({ destination_ip: cidr('0.0.0.0', 0) }),
      six: policy(ANY, { direct_remote_ip: cidr('::', 0) }),
      port: policy({ destination_port_range: { start: 1, end: 65536 } }),
    }),
  );
  const listener = { ...httpListener('pipe', 0, manager), address: { pipe: { path: `${directory}/pipe` } } };
  await startBaton(t, { args: ['-l', 'warning'], config: bootstrap({ listeners: [listener], clusters: [] }) });
  t.equal((await httpRequest(0, '/', { socketPath: `${directory}/pipe` })).status, 200);
});

t.test('unsupported rules are refused with their position', async (t) => {
  for (const [filter, message] of [
    [
      rules('ALLOW', { a: policy({ destination_ip: cidr('300.0.0.1', 8) }) }),
      /destination_ip\.address_prefix: malformed IP address/,
    ],
    [
      rules('ALLOW', { 'a b': policy(path({ safe_regex: { regex: '(' } })) }),
      /policies\["a b"\]\.permissions\[0\]\.url_path\.path\.safe_regex\.regex/,
    ],
    [
      rules('ALLOW', { a: policy(ANY, { authenticated: { principal_name: { safe_regex: { regex: '(' } } } }) }),
      /authenticated\.principal_name\.safe_regex\.regex/,
    ],
    [rules('ALLOW', { a: { permissions: [ANY] } }), /principals/],
    [matcherOf({ header_name: 'a b' }), /header_name/],
    [matcherOf({ header_name: 'a' }, { keep_matching: true }), /keep_matching/],
    [matcherOf({ header_name: 'a' }, { action: undefined }), /on_match/],
  ] as const) {
    t.match(await refusal(t, guarded(filter)), message);
  }
  const route = answering({ prefix: '/' }, 'a', perRoute(rules('ALLOW', { a: policy({ header: { name: 'a b' } }) })));
  t.match(await refusal(t, guarded({}, [route])), /typed_per_filter_config.*rbac\.rules\.policies.*header\.name/);
});

async function refusal(t: Test, manager: Config): Promise<string> {
  const config = bootstrap({ listeners: [httpListener('a', 0, manager)], clusters: [] });
  const process = await startBaton(t, { config, args: ['--mode', 'validate'], wait: 'spawned' });
  t.equal((await process.exited).code, 1);
  return process.stderr;
}

function matcherOf(input: Config, onMatch: Config = {}): Config {
  const type = 'type.googleapis.com';
  const typed_config = { '@type': `${type}/envoy.type.matcher.v3.HttpRequestHeaderMatchInput`, ...input };
  const action = { name: 'a', typed_config: { '@type': `${type}/envoy.config.rbac.v3.Action`, name: 'a' } };
  const predicate = { single_predicate: { input: { name: 'i', typed_config }, value_match: { exact: 'a' } } };
  return { matcher: { matcher_list: { matchers: [{ predicate, on_match: { action, ...onMatch } }] } } };
}
