// The CORS filter: pages of allowed origins may read responses, and preflights report what they may send; other origins get no
// CORS headers.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import {
  type Config,
  fileAccessLog,
  rawExchange,
  startUpstream,
  staticCluster,
  tempDir,
  waitFor,
} from '../../harness/index.js';
import { parseMessage } from '../message.js';
import { answering, headerOption, managerOf, routeConfig, routeTo, startProxy } from '../proxy.js';
import { allowing, CORS_CHAIN, corsHeaders, corsPolicy, preflight, share } from './cors.js';

const PAGE = 'https://page.example';
const FULL: Config = {
  ...allowing(PAGE),
  allow_methods: 'GET, PUT',
  allow_headers: 'x-token',
  expose_headers: 'x-sum, x-größe',
  max_age: '600',
  allow_credentials: true,
  allow_private_network_access: true,
};

/** Requests that reached the host. */
const seen: string[] = [];
const upstream = await startUpstream(t, (request, answer) => {
  seen.push(`${request.method} ${request.url}`);
  if (request.url === '/own') {
    answer.setHeader('access-control-allow-origin', '*');
    answer.setHeader('access-control-expose-headers', ['a', 'b']);
    answer.setHeader('vary', 'accept');
  }
  answer.end('from the host');
});
t.beforeEach(() => void seen.splice(0));

const STAR: Config = { ...allowing('*'), allow_methods: '*', allow_headers: '*' };
const SHARES: Readonly<Record<string, Config>> = {
  off: { filter_enabled: share(0) },
  shadow: { filter_enabled: share(0), shadow_enabled: share(100) },
  both: { filter_enabled: share(100), shadow_enabled: share(100) },
  only: { shadow_enabled: share(100) },
  keyed: { filter_enabled: share(100, 'cors.on'), shadow_enabled: share(0, 'cors.shadow') },
};
const MATCHERS: readonly [matcher: Config, allowed: string[], others: string[]][] = [
  [{ exact: PAGE, ignore_case: true }, ['HTTPS://Page.Example'], ['https://page.example:1']],
  [{ prefix: 'https://a.' }, ['https://a.b'], ['http://a.b', 'xhttps://a.b']],
  [{ suffix: '.example', ignore_case: true }, ['https://b.EXAMPLE'], ['https://b.example.com']],
  [{ contains: 'dev' }, ['http://x.dev:80'], ['http://x.DEV']],
  [{ safe_regex: { regex: 'https://[a-z]+\\.example' } }, ['https://abc.example'], ['https://a1.example', `${PAGE}/`]],
  [{ safe_regex: { regex: '.*' } }, ['null', 'anything'], []],
];
/** A policy at each level, and routes without one. */
const LEVELS = routeConfig(
  [
    {
      name: 'all',
      domains: ['*'],
      routes: [
        routeTo({ prefix: '/route' }, 'host', {}, corsPolicy({ allow_methods: 'PATCH', max_age: '' })),
        routeTo({ prefix: '/off' }, 'host', {}, corsPolicy({ filter_enabled: share(0) })),
        routeTo({ prefix: '/strict' }, 'host', {}, corsPolicy({ allow_credentials: false, ...allowing('http://a') })),
        {
          match: { prefix: '/weighted' },
          route: { weighted_clusters: { clusters: [{ name: 'host', weight: 1, ...corsPolicy({ max_age: '4' }) }] } },
          ...corsPolicy({ max_age: '3', allow_headers: 'x-3' }),
        },
        routeTo({ prefix: '/' }, 'host'),
      ],
      ...corsPolicy({ ...allowing(PAGE), max_age: '2', allow_methods: 'POST', filter_enabled: share(0) }),
    },
  ],
  corsPolicy({ ...allowing('http://general'), allow_credentials: true, allow_headers: 'x-1' }),
);
/** Answered without a host. */
const LOCAL: Config[] = [
  answering({ prefix: '/direct' }, 'direct', corsPolicy(FULL)),
  { match: { prefix: '/redirect' }, redirect: { path_redirect: '/' }, ...corsPolicy(FULL) },
  routeTo({ prefix: '/down' }, 'nobody', {}, corsPolicy(FULL)),
];
const { baton, on } = await startProxy(t, {
  listeners: {
    full: withPolicy(FULL),
    strict: withPolicy({ ...FULL, forward_not_matching_preflights: false }),
    star: withPolicy(STAR),
    stars: withPolicy({ ...STAR, allow_methods: '*, GET', allow_headers: '' }),
    matching: managerOf(
      MATCHERS.map(([matcher], index) =>
        routeTo(
          { prefix: `/${index}` },
          'host',
          {},
          corsPolicy({ allow_origin_string_match: [{ exact: 'x' }, matcher] }),
        ),
      ),
      CORS_CHAIN,
    ),
    levels: { route_config: LEVELS, ...CORS_CHAIN },
    local: managerOf(LOCAL, CORS_CHAIN),
    ...Object.fromEntries(Object.entries(SHARES).map(([name, each]) => [name, withPolicy({ ...FULL, ...each })])),
  },
  clusters: [staticCluster('host', upstream.port), staticCluster('nobody', [])],
  extra: { layered_runtime: {} },
  // A runtime value that one request has observed applies to the next one.
  args: ['-l', 'warning', '--concurrency', '1'],
});
const countsOf = (listener: string) => baton.stats(`http.${listener}.cors.`);

t.test("the filter's stats exist before traffic", async (t) => {
  t.same(await countsOf('full'), { origin_valid: 0, origin_invalid: 0 });
});

t.test('a preflight of an allowed origin is answered locally, with all that the policy allows', async (t) => {
  const log = join(tempDir(t), 'access.log');
  const added = { response_headers_to_add: [headerOption('x-route', 'added')] };
  const { baton, get, port } = await startProxy(t, {
    listeners: {
      main: managerOf([routeTo({ prefix: '/' }, 'host', {}, { ...corsPolicy(FULL), ...added })], {
        ...CORS_CHAIN,
        access_log: [fileAccessLog(log, '%REQ(:METHOD)% %RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS%\n')],
      }),
    },
    clusters: [staticCluster('host', upstream.port)],
  });
  const answer = await get('/', preflight(PAGE));
  t.match(answer, { status: 200, body: '', headers: { 'content-length': '0' } });
  t.same(corsHeaders(answer), [
    ['access-control-allow-origin', PAGE],
    ['access-control-allow-credentials', 'true'],
    ['access-control-allow-methods', 'GET, PUT'],
    ['access-control-allow-headers', 'x-token'],
    ['access-control-max-age', '600'],
    ['access-control-expose-headers', Buffer.from('x-sum, x-größe').toString('latin1')],
  ]);
  t.equal(answer.headers['x-route'], undefined, 'not a response of a host');
  const ofGrpc = await get('/', preflight(PAGE, { 'content-type': 'application/grpc' }));
  t.same(corsHeaders(ofGrpc), corsHeaders(answer));
  t.equal(ofGrpc.headers['grpc-status'], undefined);

  const near = await get('/', preflight(PAGE, { 'access-control-request-private-network': 'true' }));
  t.equal(near.headers['access-control-allow-private-network'], 'true');
  const far = await get('/', preflight(PAGE, { 'access-control-request-private-network': 'false' }));
  t.equal(far.headers['access-control-allow-private-network'], undefined);
  t.same(seen, []);

  // A second request on the connection of a preflight.
  const head = 'host: a\r\norigin: https://page.example\r\n';
  const first = `OPTIONS / HTTP/1.1\r\n${head}access-control-request-method: GET\r\n\r\n`;
  const { text } = await rawExchange(port, `${first}GET / HTTP/1.1\r\n${head}connection: close\r\n\r\n`);
  t.match(parseMessage(text), { status: 200, rest: /^HTTP\/1.1 200 OK\r\n(.*\r\n)+from the host$/ });
  await baton.waitForStats({ 'http.main.cors.origin_valid': 6, 'http.main.cors.origin_invalid': 0 });
  await baton.stop();
  const lines = readFileSync(log, 'utf8').trim().split('\n');
  t.same(lines, [...Array(5).fill('OPTIONS 200 - cors_response'), 'GET 200 - via_upstream']);
});

t.test("the response to an allowed origin has the policy's headers in place of the host's", async (t) => {
  for (const path of ['/', '/own']) {
    const answer = await on('full', path, { headers: { origin: PAGE } });
    t.match(answer, { status: 200, body: 'from the host' });
    const own = corsHeaders(answer).filter(([name]) => name !== 'vary');
    t.same(own, [
      ['access-control-allow-origin', PAGE],
      ['access-control-allow-credentials', 'true'],
      ['access-control-expose-headers', Buffer.from('x-sum, x-größe').toString('latin1')],
    ]);
    t.equal(answer.headers['vary'], path === '/own' ? 'accept' : undefined, 'vary is left to the host');
  }
  t.same(seen, ['GET /', 'GET /own']);
  const plain = await on('full', '/', {
    method: 'OPTIONS',
    headers: { origin: PAGE, 'access-control-request-method': '' },
  });
  t.match(plain, { body: 'from the host', headers: { 'access-control-allow-origin': PAGE } }, 'not a preflight');
});

t.test('requests without an Origin are forwarded unchanged', async (t) => {
  const before = await countsOf('full');
  const without = { method: 'OPTIONS', headers: { 'access-control-request-method': 'GET' } };
  for (const request of [{}, { headers: { origin: '' } }, without]) {
    const answer = await on('full', '/', request);
    t.match(answer, { status: 200, body: 'from the host' });
    t.same(corsHeaders(answer), []);
  }
  t.same(await countsOf('full'), before);
});

t.test("another origin gets the host's response, and its preflights too unless the policy answers them", async (t) => {
  const { origin_invalid: before } = await countsOf('full');
  for (const origin of ['https://other.example', `${PAGE}.evil`, 'null', 'https://PAGE.example']) {
    const answer = await on('full', '/', { headers: { origin } });
    t.match(answer, { status: 200, body: 'from the host' });
    t.same(corsHeaders(answer), []);
  }
  const two = await on('full', '/', { headers: { origin: [PAGE, PAGE] as never } });
  t.same(corsHeaders(two), [], 'two Origin fields match no origin');
  t.match(await on('full', '/own', preflight('https://other.example')), {
    body: 'from the host',
    headers: { 'access-control-allow-origin': '*' },
  });
  await baton.waitForStat('http.full.cors.origin_invalid', before! + 6);

  seen.splice(0);
  const refused = await on('strict', '/', preflight('https://other.example'));
  t.match(refused, { status: 200, body: '' });
  t.same(corsHeaders(refused), [
    ['access-control-allow-credentials', 'true'],
    ['access-control-allow-methods', 'GET, PUT'],
    ['access-control-allow-headers', 'x-token'],
    ['access-control-max-age', '600'],
  ]);
  t.same(seen, []);
  t.match(await on('strict', '/', preflight(PAGE)), { body: '', headers: { 'access-control-allow-origin': PAGE } });
});

t.test('a wildcard allows whatever is requested', async (t) => {
  const asked = await on('star', '/', preflight(PAGE, { 'access-control-request-headers': ['x-one', 'x-two'] }));
  t.same(corsHeaders(asked), [
    ['access-control-allow-origin', PAGE],
    ['access-control-allow-methods', 'PUT'],
    ['access-control-allow-headers', 'x-one,x-two'],
  ]);
  t.same(corsHeaders(await on('star', '/', preflight(PAGE))).at(-1), ['access-control-allow-headers', '']);
  t.same(corsHeaders(await on('stars', '/', preflight(PAGE))), [
    ['access-control-allow-origin', PAGE],
    ['access-control-allow-methods', '*, GET'],
  ]);
});

t.test('origins are matched by every kind of string matcher', async (t) => {
  const allowsOrigin = async (index: number, origin: string) =>
    (await on('matching', `/${index}`, { headers: { origin } })).headers['access-control-allow-origin'];
  for (const [index, [matcher, allowed, others]] of MATCHERS.entries()) {
    for (const origin of allowed)
      t.equal(await allowsOrigin(index, origin), origin, `${JSON.stringify(matcher)} ${origin}`);
    for (const origin of others)
      t.equal(await allowsOrigin(index, origin), undefined, `${JSON.stringify(matcher)} ${origin}`);
  }
});

t.test('a policy is enforced for a fraction of the requests, and in shadow mode for another', async (t) => {
  const isAnswered = async (name: string) => (await on(name, '/', preflight(PAGE))).body === '';
  const isEnforced = async (name: string) => {
    const answer = await on(name, '/', { headers: { origin: PAGE } });
    const isAllowed = answer.headers['access-control-allow-origin'] === PAGE;
    t.equal(await isAnswered(name), isAllowed, name);
    return isAllowed;
  };
  const counted = (name: string) => baton.stat(`http.${name}.cors.origin_valid`);
  t.notOk(await isEnforced('off'));
  t.equal(await counted('off'), 0);
  t.notOk(await isEnforced('shadow'));
  await baton.waitForStat('http.shadow.cors.origin_valid', 2);
  await on('shadow', '/', { headers: { origin: 'http://other' } });
  await baton.waitForStat('http.shadow.cors.origin_invalid', 1);
  t.ok(await isEnforced('both'));
  await baton.waitForStat('http.both.cors.origin_valid', 2);
  t.ok(await isEnforced('only'), 'filter_enabled defaults to on');
  t.ok(await isEnforced('keyed'));
  await baton.waitForStat('http.keyed.cors.origin_valid', 2);

  const modify = (values: string) => baton.admin(`/runtime_modify?${values}`, { method: 'POST' });
  await modify('cors.on=0');
  await waitFor(async () => !(await isAnswered('keyed')), { what: 'the policy to be off' });
  const before = (await counted('keyed'))!;
  t.notOk(await isEnforced('keyed'));
  t.equal(await counted('keyed'), before);
  await modify('cors.shadow=100');
  const isCounted = async () => !(await isAnswered('keyed')) && (await counted('keyed'))! > before;
  await waitFor(isCounted, { what: 'origins to be counted only' });
  t.notOk(await isEnforced('keyed'));
  await modify('cors.on=');
  await waitFor(() => isAnswered('keyed'), { what: 'the policy to be on again' });
});

t.test(
  'the most specific level that sets a field decides, and the most specific policy is enabled by default',
  async (t) => {
    const asked = async (path: string, origin = PAGE) => {
      const answer = await on('levels', path, preflight(origin));
      return answer.body === '' ? Object.fromEntries(corsHeaders(answer).map(([n, v]) => [n.slice(15), v])) : 'host';
    };
    t.equal(await asked('/'), 'host', 'the policy of the virtual host is off');
    t.same(await asked('/route'), {
      'allow-origin': PAGE,
      'allow-credentials': 'true',
      'allow-methods': 'PATCH',
      'allow-headers': 'x-1',
      'max-age': '2',
    });
    t.equal(await asked('/off'), 'host');
    t.equal(await asked('/strict'), 'host', 'its list of origins replaces that of the virtual host');
    t.same(await asked('/strict', 'http://a'), {
      'allow-origin': 'http://a',
      'allow-methods': 'POST',
      'allow-headers': 'x-1',
      'max-age': '2',
    });
    t.match(await asked('/weighted'), { 'allow-headers': 'x-3', 'max-age': '4', 'allow-methods': 'POST' });
  },
);

t.test('local replies of the router have the headers; redirects and direct responses do not', async (t) => {
  const headers = { origin: PAGE };
  t.match(await on('local', '/down', { headers }), { status: 503, headers: { 'access-control-allow-origin': PAGE } });
  for (const [path, status] of [
    ['/direct', 200],
    ['/redirect', 301],
    ['/nowhere', 404],
  ] as const) {
    for (const request of [{ headers }, preflight(PAGE)]) {
      const answer = await on('local', path, request);
      t.equal(answer.status, status, path);
      t.same(corsHeaders(answer), []);
    }
  }
});

/** Returns a connection manager with one policy for all requests. */
function withPolicy(policy: Config): Config {
  return managerOf([routeTo({ prefix: '/' }, 'host', {}, corsPolicy(policy))], CORS_CHAIN);
}
