// envoy.filters.http.stateful_session: a client that names its host in a cookie or a header gets the same one again. The expected results
// are those of Envoy 1.40.

import t, { type Test } from 'tap';
import { ResourceFile } from '../../dynamic/resource-file.js';
import { besideEnvoy, type ProxyProgram } from '../../harness/envoy.js';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  type HttpAnswer,
  httpListener,
  httpRequest,
  loopback,
  startBaton,
  startUpstream,
  staticCluster,
  tempDir,
  waitFor,
} from '../../harness/index.js';
import { managerOf, routeTo } from '../proxy.js';

const NAMES = ['a', 'b', 'c', 'd', 'e', 'f'] as const;
const STATUSES = ['UNKNOWN', 'UNKNOWN', 'HEALTHY', 'DEGRADED', 'UNHEALTHY', 'DRAINING'] as const;
type Name = (typeof NAMES)[number];
const ports = new Map<Name, number>();
for (const name of NAMES)
  ports.set(name, (await startUpstream(t, (_request, response) => void response.end(name))).port);

const FILTERS = 'type.googleapis.com/envoy.extensions.filters.http';
const STATES = 'type.googleapis.com/envoy.extensions.http.stateful_session';
const ROUTER: Config = { name: 'router', typed_config: { '@type': `${FILTERS}.router.v3.Router` } };
const FORWARD: Config = {
  name: 'forward',
  typed_config: {
    '@type': `${FILTERS}.dynamic_forward_proxy.v3.FilterConfig`,
    dns_cache_config: { name: 'cache', dns_lookup_family: 'V4_ONLY' },
  },
};
const addressOf = (name: Name) => `127.0.0.1:${ports.get(name)}`;
const base64 = (bytes: string | Buffer) => Buffer.from(bytes as string, 'latin1').toString('base64');
const cookieOf = (address: string, expires: number[] = []) =>
  base64(
    Buffer.from([0x0a, address.length, ...Buffer.from(address), ...(expires.length > 0 ? [0x10, ...expires] : [])]),
  );

besideEnvoy('a cookie brings a client back to its host', async (t, program) => {
  const { baton, get } = await start(t, program);
  const first = await get('/one');
  const [, value] = /^sid="([^"]+)"; HttpOnly$/.exec(String(first.headers['set-cookie']))!;
  t.equal(value, cookieOf(addressOf(first.body as Name)));
  for (let turn = 0; turn < 6; turn++) {
    const again = await get('/one', { cookie: `x=y; sid="${value}"` });
    t.same([again.body, again.headers['set-cookie']], [first.body, undefined]);
  }
  const accepted: Record<string, string> = {
    unquoted: cookieOf(addressOf('b')),
    'of an older version': base64(addressOf('b')),
    'that expires later': cookieOf(addressOf('b'), [0xff, 0xff, 0xff, 0xff, 0x7f]),
  };
  for (const [what, cookie] of Object.entries(accepted)) {
    const bodies = await many(4, () => get('/one', { cookie: `sid=${cookie}` }));
    t.same(new Set(bodies), new Set(['b']), what);
  }
  const ignored: Record<string, string> = {
    expired: cookieOf(addressOf('b'), [5]),
    'of another host': cookieOf('1.2.3.4:80'),
    'without padding': cookieOf(addressOf('b')).replace(/=+$/, ''),
    'of no Base64': '%%%',
    'of a message that ends too early': base64('\x0a\x7fabc'),
    'of an unhealthy host': cookieOf(addressOf('e')),
    'of a draining host': cookieOf(addressOf('f')),
    'that is too long': base64('a'.repeat(3000)),
    empty: '',
  };
  for (const [what, cookie] of Object.entries(ignored)) {
    const { headers, status } = await get('/one', { cookie: `sid=${cookie}` });
    t.equal(status, 200, what);
    t.match(String(headers['set-cookie']), /^sid="/, `${what}: the client gets another one`);
  }
  t.match(await baton.stats('http.all.stateful_session.mine.'), {
    routed: 18,
    failed_open: 10,
    failed_closed: 0,
    no_session: 0,
  });
});

besideEnvoy('a route has a session of its own, or none', async (t, program) => {
  const { get } = await start(t, program);
  t.equal((await get('/off')).headers['set-cookie'], undefined);
  t.equal((await get('/empty')).headers['set-cookie'], undefined);
  const first = await get('/header');
  t.equal(first.headers['x-session'], base64(addressOf(first.body as Name)));
  const again = await get('/header', { 'x-session': base64(addressOf('b')) });
  t.same([again.body, again.headers['x-session']], ['b', undefined]);
  t.equal((await get('/path')).headers['set-cookie'], undefined, 'the path of the cookie is another one');
  t.equal((await get('/path/xy')).headers['set-cookie'], undefined);
  for (const path of ['/path/x', '/path/x/y', '/path/x?q'])
    t.match(
      String((await get(path)).headers['set-cookie']),
      /^sid="[^"]+"; Max-Age=20; Path=\/path\/x; SameSite=Lax; Secure; HttpOnly$/,
    );
});

besideEnvoy('a strict session fails without its host', async (t, program) => {
  const { baton, get } = await start(t, program);
  const named = (address: string) => ({ 'x-session': base64(address) });
  t.equal((await get('/strict')).status, 200, 'a request without a session gets any host');
  t.equal((await get('/strict', named(addressOf('c')))).body, 'c');
  for (const address of ['1.2.3.4:1', addressOf('e'), 'nonsense'])
    t.match(await get('/strict', named(address)), { status: 503, body: 'no healthy upstream' });
  t.match(await get('/strict-404', named('1.2.3.4:1')), { status: 404, body: 'no healthy upstream' });
  t.equal(await baton.stat('cluster.one.upstream_cx_none_healthy'), 4);
  t.match(await baton.stats('stateful_session.strict.'), { routed: 1, failed_closed: 3 });
  t.match(
    await baton.stats('http.all.stateful_session.mine.'),
    { routed: 0, failed_closed: 0, failed_open: 0 },
    'the filter counts requests with its own rules only',
  );
});

besideEnvoy('a session applies where requests name their host, too', async (t, program) => {
  const { get } = await start(t, program, [forwardProxy('forward'), forwardProxy('strict-forward')]);
  // Both clusters have the same cache.
  const unnamed: Record<string, Name> = { '/forward': 'c', '/strict-forward': 'd' };
  for (const [path, later] of Object.entries(unnamed)) {
    const from = (name: Name, address: string) =>
      get(path, { host: addressOf(name), 'x-session': base64(address) }).then(({ body }) => body);
    t.same([await from('a', ''), await from('b', '')], ['a', 'b']);
    t.equal(await from('a', addressOf('b')), 'b');
    const other = path === '/forward' ? 'a' : 'no healthy upstream';
    t.equal(await from('a', addressOf(later)), other, 'no request has named this host yet');
    t.equal(await from('a', '1.2.3.4:1'), other);
    t.equal(await from(later, ''), later);
    t.equal(await from('a', addressOf(later)), later);
  }
});

besideEnvoy('override_host_status selects the health with which a host is returned to', async (t, program) => {
  const { get } = await start(t, program);
  const back = async (path: string) => {
    let found = '';
    for (const name of NAMES) {
      const bodies = await many(5, () => get(path, { cookie: `sid=${cookieOf(addressOf(name))}` }));
      if (bodies.every((body) => body === name)) found += name;
    }
    return found;
  };
  t.equal(await back('/one'), 'abcd');
  t.equal(await back('/any'), 'abcdef');
  t.equal(await back('/healthy'), 'c', 'a host without a health_status is UNKNOWN');
  t.equal(await back('/never'), '');
});

besideEnvoy('a session follows the hosts that EDS delivers', async (t, program) => {
  const endpoints = new ResourceFile(tempDir(t), 'endpoints');
  const assign = (hosts: Partial<Record<Name, string>>) =>
    endpoints.write('envoy.config.endpoint.v3.ClusterLoadAssignment', {
      cluster_name: 'moving',
      endpoints: [
        {
          lb_endpoints: Object.entries(hosts).map(([name, health_status]) => ({
            endpoint: { address: loopback(ports.get(name as Name)!) },
            health_status,
          })),
        },
      ],
    });
  assign({ a: 'HEALTHY', b: 'HEALTHY' });
  const { get } = await start(t, program, [
    { name: 'moving', connect_timeout: '2s', type: 'EDS', eds_cluster_config: { eds_config: endpoints.source } },
  ]);
  /** Returns whether all of some requests that name the host get it. */
  const isAt = async (name: Name) => {
    const bodies = await many(6, () => get('/moving', { cookie: `sid=${cookieOf(addressOf(name))}` }));
    return bodies.every((body) => body === name);
  };
  t.equal(await isAt('b'), true);
  t.equal(await isAt('c'), false);
  assign({ c: 'HEALTHY', b: 'HEALTHY', a: 'HEALTHY' });
  await waitFor(() => isAt('c'), { what: 'the new host' });
  t.same([await isAt('b'), await isAt('a')], [true, true], 'the others have other places in the list');
  assign({ c: 'DRAINING', b: 'HEALTHY', a: 'HEALTHY' });
  await waitFor(async () => !(await isAt('c')), { what: 'the draining host to be left' });
  assign({ c: 'HEALTHY', b: 'HEALTHY', a: 'HEALTHY' });
  await waitFor(() => isAt('c'), { what: 'the host to be back' });
  assign({ b: 'HEALTHY', a: 'HEALTHY' });
  await waitFor(async () => !(await isAt('c')), { what: 'the host to be gone' });
  t.same([await isAt('b'), await isAt('a')], [true, true]);
});

t.test('a session that cannot be used is refused', async (t) => {
  const config = bootstrap({
    listeners: [
      httpListener('bad', 0, managerOf([], { http_filters: [session(byCookie({ name: 'a', path: 'x;y' })), ROUTER] })),
      httpListener('worse', 0, managerOf([], { http_filters: [session(byHeader('a b'), { strict: true }), ROUTER] })),
      httpListener('odd', 0, managerOf([], { http_filters: [session(byCookie({ name: 'a; Domain=b' })), ROUTER] })),
    ],
    clusters: [],
  });
  const baton = await startBaton(t, { config, args: ['--mode', 'validate'], wait: 'spawned' });
  t.equal((await baton.exited).code, 1);
  t.match(baton.stderr, "a part of a cookie holds neither ';' nor control characters");
  t.match(baton.stderr, /listeners\[1\]\.filter_chains/);
  t.match(baton.stderr, /session_state\.typed_config\.cookie\.name: 'a; Domain=b' is not a valid cookie name/);
});

interface Started {
  readonly baton: BatonProcess;
  get(path: string, headers?: Record<string, string>): Promise<HttpAnswer>;
}

function byCookie(cookie: Config): Config {
  const typed_config = { '@type': `${STATES}.cookie.v3.CookieBasedSessionState`, cookie };
  return { session_state: { name: 'envoy.http.stateful_session.cookie', typed_config } };
}

function byHeader(name: string): Config {
  const typed_config = { '@type': `${STATES}.header.v3.HeaderBasedSessionState`, name };
  return { session_state: { name: 'envoy.http.stateful_session.header', typed_config } };
}

function session(state: Config, more: Config = {}): Config {
  const typed_config = { '@type': `${FILTERS}.stateful_session.v3.StatefulSession`, ...state, ...more };
  return { name: 'session', typed_config };
}

async function start(t: Test, program: ProxyProgram, others: Config[] = []): Promise<Started> {
  const routed = (path: string, override: Config, cluster = 'one') =>
    routeTo(
      { prefix: path },
      cluster,
      {},
      {
        typed_per_filter_config: {
          session: { '@type': `${FILTERS}.stateful_session.v3.StatefulSessionPerRoute`, ...override },
        },
      },
    );
  const own = (path: string, stateful_session: Config, to = 'one') => routed(path, { stateful_session }, to);
  const isForward = others.some(({ name }) => name === 'forward');
  const attributes = [{ name: 'SameSite', value: 'Lax' }, { name: 'Secure' }];
  const forwarding = [
    own('/forward', byHeader('x-session'), 'forward'),
    own('/strict-forward', { ...byHeader('x-session'), strict: true }, 'strict-forward'),
  ];
  const routes = [
    ...(isForward ? forwarding : []),
    ...['one', 'any', 'healthy', 'never', ...others.map(({ name }) => String(name))].map((name) =>
      routeTo({ prefix: `/${name}` }, name),
    ),
    routed('/off', { disabled: true }),
    own('/empty', {}),
    own('/header', byHeader('x-session')),
    own('/strict-404', { ...byHeader('x-session'), strict: true, status_on_strict_destination_not_found: 404 }),
    own('/strict', { ...byHeader('x-session'), strict: true, stat_prefix: 'strict' }),
    own('/path', byCookie({ name: 'sid', path: '/path/x', ttl: '20s', attributes })),
  ];
  const filter = session(byCookie({ name: 'sid' }), { stat_prefix: 'mine' });
  const baton = await startBaton(t, {
    ...program,
    args: ['-l', 'warning', '--service-node', 'n', '--service-cluster', 'c'],
    config: bootstrap({
      listeners: [
        httpListener('all', 0, {
          ...managerOf(routes, { http_filters: [filter, ...(isForward ? [FORWARD] : []), ROUTER] }),
          stat_prefix: 'all',
        }),
      ],
      clusters: [
        cluster('one'),
        cluster('any', ['UNKNOWN', 'HEALTHY', 'DEGRADED', 'UNHEALTHY', 'DRAINING']),
        cluster('healthy', ['HEALTHY']),
        cluster('never', []),
        ...others,
      ],
    }),
  });
  const port = await baton.listenerPort('all');
  return { baton, get: (path, headers = {}) => httpRequest(port, path, { headers }) };
}

function cluster(name: string, statuses?: readonly string[]): Config {
  const lb_endpoints = NAMES.map((each, index) => ({
    endpoint: { address: loopback(ports.get(each)!) },
    health_status: STATUSES[index],
  }));
  return {
    ...staticCluster(name, []),
    load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints }] },
    ...(statuses && { common_lb_config: { override_host_status: { statuses } } }),
  };
}

/** Hosts exist once a request has named them. */
function forwardProxy(name: string): Config {
  const typed_config = {
    '@type': 'type.googleapis.com/envoy.extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig',
    dns_cache_config: { name: 'cache', dns_lookup_family: 'V4_ONLY' },
  };
  const cluster_type = { name: 'envoy.clusters.dynamic_forward_proxy', typed_config };
  return { name, connect_timeout: '2s', lb_policy: 'CLUSTER_PROVIDED', cluster_type };
}

async function many(count: number, send: () => Promise<HttpAnswer>): Promise<string[]> {
  const bodies: string[] = [];
  for (let turn = 0; turn < count; turn++) bodies.push((await send()).body);
  return bodies;
}
