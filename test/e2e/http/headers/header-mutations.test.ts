// Headers that the configuration adds, changes and removes: at every level, in both directions, and in which order.

import t from 'tap';
import {
  type Config,
  type EchoedRequest,
  rawExchange,
  startUpstream,
  staticCluster,
  waitFor,
} from '../../harness/index.js';
import { headerOption, managerOf, routeConfig, routeTo, startProxy } from '../proxy.js';

const OVERWRITE = { append_action: 'OVERWRITE_IF_EXISTS_OR_ADD' };
const FILTER = 'type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.';
const ROUTER = {
  name: 'router',
  typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
};

const waiting: (() => void)[] = [];
const upstream = await startUpstream(t, ({ method, url, headers, rawHeaders }, answer) => {
  const account: EchoedRequest = { method: method!, url: url!, headers, rawHeaders, body: '' };
  answer.setHeader('x-own', ['from', 'host']);
  answer.setHeader('x-drop', 'me');
  const end = () => void answer.end(JSON.stringify(account));
  if (url === '/late' || url === '/filter/late') waiting.push(end);
  else end();
});

const silent = await startUpstream(t, () => {});

const proxy = await startProxy(t, {
  listeners: {
    levels: { route_config: leveled({}) },
    specificWins: { route_config: leveled({ most_specific_header_mutations_wins: true }) },
    actions: managerOf([routeTo({ prefix: '/' }, 'host', {}, actionOptions())]),
    formats: managerOf([routeTo({ prefix: '/' }, 'host', {}, formatOptions()), directRoute()]),
    filter: filtered(false),
    specificFilter: filtered(true),
    stead: standingIn(),
  },
  clusters: [staticCluster('host', upstream.port), staticCluster('silent', silent.port)],
});

t.test('every level adds and removes; the last in order overwrites', async (t) => {
  const client = { 'x-gone-route': '1', 'x-gone-host': '1', 'x-gone-all': '1', 'x-gone-weight': '1', 'x-stays': '1' };
  const usual = await proxy.on('levels', '/', { headers: client });
  const { headers } = seen(usual.body);
  t.match(headers, { 'x-level': 'all', 'x-each': 'weight, route, host, all', 'x-stays': '1' });
  for (const level of ['weight', 'route', 'host', 'all']) t.equal(headers[`x-gone-${level}`], undefined);
  t.equal(usual.headers['x-level'], 'all');
  t.equal(usual.headers['x-each'], 'weight, route, host, all');
  t.equal(usual.headers['x-drop'], undefined);

  const specific = await proxy.on('specificWins', '/', { headers: client });
  t.match(seen(specific.body).headers, { 'x-level': 'route', 'x-each': 'weight, all, host, route' });
  t.equal(specific.headers['x-level'], 'route');
});

t.test('append_action decides what happens to an existing field', async (t) => {
  const { headers } = seen((await proxy.on('actions', '/', { headers: { 'x-there': 'old' } })).body);
  t.equal(headers['x-there'], 'old, appended');
  const actions = (await proxy.on('actions', '/', { headers: { 'x-absent': 'old', 'x-over': 'old' } })).body;
  t.match(seen(actions).headers, { 'x-absent': 'old', 'x-over': 'new' });
  t.equal(seen(actions).headers['x-only-over'], undefined);
  const none = seen((await proxy.on('actions', '/', { headers: { 'x-only-over': 'old' } })).body).headers;
  t.match(none, { 'x-absent': 'added', 'x-over': 'new', 'x-only-over': 'new', 'x-there': 'appended' });
  t.equal(none['x-empty'], undefined, 'an empty value adds nothing');
  t.equal(none['x-kept-empty'], '', 'with keep_empty_value it is added');
  const { headers: response } = await proxy.on('actions', '/');
  t.equal(response['x-own'], 'from, host, proxy');
});

t.test('values are formatted from properties of the request', async (t) => {
  const client = { host: 'client.test', 'x-name': 'value \xe4', 'x-long': 'abcdefghij' };
  const { body, headers: response } = await proxy.on('formats', '/path?q=1', { headers: client });
  const { headers } = seen(body);
  t.match(headers, {
    'x-peer': '127.0.0.1',
    'x-protocol': 'HTTP/1.1',
    'x-request': 'GET client.test /path?q=1 value \xe4',
    'x-cut': 'abc',
    'x-missing': '',
    'x-percent': '100%',
  });
  t.match(response, { 'x-code': '200', 'x-echoed': 'value \xe4', 'x-from-host': 'me', 'x-cluster': 'host' });
  t.equal(response['x-upstream'], `127.0.0.1:${upstream.port}`);
  t.match((await proxy.on('formats', '/direct', { headers: client })).headers, { 'x-echoed': 'value \xe4' });
});

t.test("local replies in place of a host's response have the headers of their route", async (t) => {
  const refused = 'GET /refused HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: other\r\n\r\n';
  const large = `POST /large HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 4\r\n\r\n1234`;
  const cases: [string, number, string][] = [
    ['/missing', 503, 'no such cluster'],
    ['/idle', 504, 'the stream idle timeout'],
    ['/slow', 504, 'too slow'],
    ['/checked', 200, 'a filter answers'],
  ];
  for (const [path, status, what] of cases) {
    const { headers, ...answer } = await proxy.on('stead', path, { headers: { 'x-name': what } });
    t.match({ ...answer, headers }, { status, headers: { 'x-echoed': what, 'x-code': `${status}` } }, path);
  }
  for (const [request, status] of [
    [refused, 403],
    [large, 413],
  ] as const) {
    const { text } = await rawExchange(proxy.ports['stead']!, request);
    t.match(text, new RegExp(`^HTTP/1.1 ${status} (.*\\r\\n)*x-code: ${status}\\r\\n`), `${status}`);
  }
  const { headers } = await proxy.on('stead', '/none');
  t.equal(headers['x-code'], undefined, 'a reply without a route has none');
});

t.test('headers of a late response are formatted from its own request', async (t) => {
  const headers = { 'x-name': 'the value of this request' };
  for (const listener of ['formats', 'filter']) {
    const path = listener === 'filter' ? '/filter/late' : '/late';
    const answer = proxy.on(listener, path, { headers });
    await waitFor(() => waiting.length === 1);
    // Other requests reuse the memory of the first one.
    for (let i = 0; i < 5; i++) await proxy.on(listener, '/other', { headers: { 'x-name': `another ${i}` } });
    waiting.pop()!();
    t.equal((await answer).headers['x-echoed'], headers['x-name'], listener);
  }
});

t.test('the header_mutation filter changes both directions, and routes configure it', async (t) => {
  const client = { 'x-gone': '1', 'x-over': 'old' };
  const usual = await proxy.on('filter', '/', { headers: client });
  t.match(seen(usual.body).headers, { 'x-filter': 'filter', 'x-over': 'filter' });
  t.equal(seen(usual.body).headers['x-gone'], undefined);
  t.equal(usual.headers['x-filter'], 'filter');
  t.equal(usual.headers['x-drop'], undefined);

  const routed = { ...client, host: 'routed.test' };
  const route = await proxy.on('filter', '/', { headers: routed });
  t.match(seen(route.body).headers, { 'x-filter': 'filter, route, host', 'x-over': 'host' });
  t.equal(route.headers['x-filter'], 'filter, route, host');
  const specific = await proxy.on('specificFilter', '/', { headers: routed });
  t.match(seen(specific.body).headers, { 'x-filter': 'filter, host, route', 'x-over': 'route' });

  const local = await proxy.on('filter', '/direct');
  t.match(local, { status: 200, body: 'direct', headers: { 'x-filter': 'filter' } }, 'local replies too');
});

function seen(body: string): EchoedRequest {
  // The client reads Latin-1, and the host wrote UTF-8.
  return JSON.parse(Buffer.from(body, 'latin1').toString());
}

/** Returns one level's mutations in both directions. */
function level(name: string): Config {
  const toAdd = [headerOption('x-level', name, OVERWRITE), headerOption('x-each', name)];
  return {
    request_headers_to_add: toAdd,
    request_headers_to_remove: [`x-gone-${name}`],
    response_headers_to_add: toAdd,
    response_headers_to_remove: name === 'route' ? ['x-drop'] : [],
  };
}

function leveled(more: Config): Config {
  const route = {
    match: { prefix: '/' },
    route: { weighted_clusters: { clusters: [{ name: 'host', weight: 1, ...level('weight') }] } },
    ...level('route'),
  };
  return routeConfig([{ name: 'host', domains: ['*'], routes: [route], ...level('host') }], {
    ...level('all'),
    ...more,
  });
}

function actionOptions(): Config {
  return {
    request_headers_to_add: [
      headerOption('x-there', 'appended'),
      headerOption('x-absent', 'added', { append_action: 'ADD_IF_ABSENT' }),
      headerOption('x-over', 'new', OVERWRITE),
      headerOption('x-only-over', 'new', { append_action: 'OVERWRITE_IF_EXISTS' }),
      headerOption('x-empty', '%REQ(x-nothing)%'),
      headerOption('x-kept-empty', '', { keep_empty_value: true }),
    ],
    response_headers_to_add: [headerOption('x-own', 'proxy')],
  };
}

function formatOptions(): Config {
  return {
    request_headers_to_add: [
      headerOption('x-peer', '%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%'),
      headerOption('x-protocol', '%PROTOCOL%'),
      headerOption('x-request', '%REQ(:METHOD)% %REQ(:AUTHORITY)% %REQ(:PATH)% %REQ(X-NAME)%'),
      headerOption('x-cut', '%REQ(x-long):3%'),
      headerOption('x-missing', '%REQ(x-nothing)%', { keep_empty_value: true }),
      headerOption('x-percent', '100%%'),
    ],
    response_headers_to_add: [
      headerOption('x-code', '%RESPONSE_CODE%'),
      headerOption('x-echoed', '%REQ(x-name)%'),
      headerOption('x-from-host', '%RESP(x-drop)%'),
      headerOption('x-cluster', '%UPSTREAM_CLUSTER%'),
      headerOption('x-upstream', '%UPSTREAM_REMOTE_ADDRESS%'),
    ],
  };
}

function directRoute(): Config {
  return {
    match: { path: '/direct' },
    direct_response: { status: 200, body: { inline_string: 'direct' } },
    response_headers_to_add: [headerOption('x-echoed', '%REQ(x-name)%')],
  };
}

/** Routes with local replies in place of a host's response. */
function standingIn(): Config {
  const echoed = {
    response_headers_to_add: [headerOption('x-echoed', '%REQ(x-name)%'), headerOption('x-code', '%RESPONSE_CODE%')],
  };
  const healthCheck = {
    '@type': 'type.googleapis.com/envoy.extensions.filters.http.health_check.v3.HealthCheck',
    pass_through_mode: false,
    headers: [{ name: ':path', string_match: { exact: '/checked' } }],
  };
  const buffer = {
    '@type': 'type.googleapis.com/envoy.extensions.filters.http.buffer.v3.Buffer',
    max_request_bytes: 3,
  };
  const routes = [
    routeTo({ path: '/missing' }, 'nowhere'),
    routeTo({ path: '/idle' }, 'silent', { timeout: '0s', idle_timeout: '0.1s' }),
    routeTo({ path: '/slow' }, 'silent', { timeout: '0.1s' }),
    ...['/checked', '/refused', '/large'].map((path) => routeTo({ path }, 'silent')),
  ];
  return {
    route_config: routeConfig([{ name: 'all', domains: ['*'], routes, ...echoed }], { validate_clusters: false }),
    http_filters: [{ name: 'check', typed_config: healthCheck }, { name: 'buffer', typed_config: buffer }, ROUTER],
  };
}

function filtered(isSpecificLast: boolean): Config {
  const mutations = (name: string, ...more: Config[]): Config => ({
    request_mutations: [
      { append: headerOption('x-filter', name) },
      { append: headerOption('x-over', name, OVERWRITE) },
      ...more,
    ],
    response_mutations: [{ append: headerOption('x-filter', name) }, ...more],
  });
  const perRoute = (name: string): Config => ({
    typed_per_filter_config: { mutation: { '@type': `${FILTER}HeaderMutationPerRoute`, mutations: mutations(name) } },
  });
  const filter = {
    name: 'mutation',
    typed_config: {
      '@type': `${FILTER}HeaderMutation`,
      mutations: mutations(
        'filter',
        { remove: 'x-gone' },
        { remove: 'x-drop' },
        {
          append: headerOption('x-echoed', '%REQ(x-name)%'),
        },
      ),
      most_specific_header_mutations_wins: isSpecificLast,
    },
  };
  return {
    route_config: routeConfig([
      {
        name: 'routed',
        domains: ['routed.test'],
        routes: [routeTo({ prefix: '/' }, 'host', {}, perRoute('route'))],
        ...perRoute('host'),
      },
      { name: 'rest', domains: ['*'], routes: [directRoute(), routeTo({ prefix: '/' }, 'host')] },
    ]),
    http_filters: [filter, ROUTER],
  };
}
