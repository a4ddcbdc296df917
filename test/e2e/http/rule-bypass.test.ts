// Attempts to bypass rules fail: other spellings of a path, escapes in a query, fields named by Connection, upgrades,
// addresses. All results are Envoy's, except those with a note.

import { besideEnvoy } from '../harness/envoy.js';
import { type Config, ROUTER_FILTER, rawExchange, staticCluster } from '../harness/index.js';
import { bucketOf, limiting, limitOf } from './extensions/rate-limits.js';
import { parseMessage } from './message.js';
import { answering, headerOption, managerOf, routeTo, startProxy } from './proxy.js';
import { response, startRawUpstream } from './raw-upstream.js';

const RBAC = 'type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC';

/** Returns a connection manager that denies requests that match the permission. */
function denying(permission: Config, more: Config = {}): Config {
  const rules = { action: 'DENY', policies: { only: { permissions: [permission], principals: [{ any: true }] } } };
  return managerOf([answering({ prefix: '/' }, 'passed')], {
    http_filters: [{ name: 'rbac', typed_config: { '@type': RBAC, rules } }, ROUTER_FILTER],
    ...more,
  });
}

/** Sends one request, and returns the status. */
async function ask(port: number, target: string, lines: readonly string[] = [], method = 'GET'): Promise<number> {
  const head = [`${method} ${target} HTTP/1.1`, 'host: a.test', ...lines, '', ''].join('\r\n');
  const { text } = await rawExchange(port, head, { until: /\r\n\r\n/ });
  return parseMessage(text).status;
}

const NORMALIZED: readonly (readonly [target: string, path: string])[] = [
  ['/..;/admin', '/admin'],
  ['/a/..;x=1;y/admin', '/admin'],
  ['/a/.;x/admin', '/a/admin'],
  ['/a/b;x/..;/..;y/c', '/c'],
  ['/a//..;/b', '/a/b'],
  ['/a/..;..;/b', '/b'],
  ['/a/..;', '/'],
  ['/a/.;?q=..;', '/a/?q=..;'],
  ['/a/..;\\b', '/'],
  ['/a/..;%2f../b', '/b'],
  ['/a/..%3b/b', '/a/..%3b/b'],
  ['/a/...;/b', '/a/...;/b'],
  ['/a;x/b', '/a;x/b'],
  ['/x/%2e%2E/admin', '/admin'],
  ['/x\\..\\admin', '/admin'],
  ['/x/..%2fadmin', '/x/..%2fadmin'],
];

besideEnvoy('a normalized path has no dot segments, with or without parameters', async (t, program) => {
  const upstream = await startRawUpstream(t, ({ socket }) => {
    socket.write(response(200));
  });
  const { ports } = await startProxy(t, {
    ...program,
    listeners: {
      normal: managerOf([routeTo({ prefix: '/' }, 'host')], { normalize_path: true }),
      left: managerOf([routeTo({ prefix: '/' }, 'host')], { normalize_path: false }),
      rbac: denying({ url_path: { path: { prefix: '/admin' } } }, { normalize_path: true }),
    },
    clusters: [staticCluster('host', upstream.port)],
  });
  for (const [target, path] of NORMALIZED) {
    await ask(ports['normal']!, target);
    t.equal(upstream.requests.at(-1)!.path, path, target);
    await ask(ports['left']!, target);
    t.equal(upstream.requests.at(-1)!.path, target, `${target} without normalize_path`);
    t.equal(await ask(ports['rbac']!, target), path.startsWith('/admin') ? 403 : 200, `a rule matches ${path}`);
  }
  // Envoy unescapes the dots after it has looked for them.
  await ask(ports['normal']!, '/a/%2e%2e;x/b');
  t.equal(upstream.requests.at(-1)!.path, program.command === undefined ? '/b' : '/a/..;x/b');
});

besideEnvoy('rate limit descriptors use pseudo-headers, and unescaped query parameters', async (t, program) => {
  /** Limits requests that an action describes with `value`: one is admitted. */
  const describing = (action: Config, value: string) =>
    limiting(
      limitOf('limit', 10_000, { descriptors: [{ entries: [{ key: 'k', value }], token_bucket: bucketOf(1) }] }),
      [routeTo({ prefix: '/' }, 'host', { rate_limits: [{ actions: [action] }] })],
    );
  const byHeader = (header_name: string, value: string) =>
    describing({ request_headers: { header_name, descriptor_key: 'k' } }, value);
  const role = { name: 'role', string_match: { exact: 'admin' } };
  const byQuery = (parameter: Config, more: Config = {}) =>
    describing(
      {
        query_parameter_value_match: {
          descriptor_key: 'k',
          descriptor_value: 'v',
          query_parameters: [parameter],
          ...more,
        },
      },
      'v',
    );
  const upstream = await startRawUpstream(t, ({ socket }) => {
    socket.write(response(200));
  });
  const { ports } = await startProxy(t, {
    ...program,
    listeners: {
      path: byHeader(':path', '/admin?a'),
      authority: byHeader(':authority', 'a.test'),
      method: byHeader(':method', 'DELETE'),
      scheme: byHeader(':scheme', 'http'),
      query: byQuery(role),
      others: byQuery(role, { expect_match: false }),
      name: byQuery({ name: 'a b', present_match: true }),
    },
    clusters: [staticCluster('host', upstream.port)],
  });
  const cases: readonly (readonly [listener: string, target: string, isLimited: boolean, method?: string])[] = [
    ['path', '/admin?a', true],
    ['path', '/admin', false],
    ['authority', '/', true],
    ['method', '/', true, 'DELETE'],
    ['method', '/', false],
    ['scheme', '/', true],
    ['query', '/?role=admin', true],
    ['query', '/?role=%61dmin', true],
    ['query', '/?x&r%6Fle=ad%6din&role=user', true],
    ['query', '/?role=user&role=admin', false],
    ['query', '/?x%26role=admin', false],
    ['query', '/?role%3Dadmin', false],
    ['query', '/?role=%2561dmin', false],
    ['query', '/?role=admin%', false],
    ['others', '/?role=%61dmin', false],
    ['others', '/?role=%61%64min', false],
    ['others', '/?role=user', true],
    ['name', '/?a%20b', true],
    ['name', '/?a+b', false],
  ];
  // The tokens for the first of each kind.
  for (const name of ['path', 'authority', 'method', 'scheme', 'query', 'others', 'name']) {
    const [, target, , method] = cases.find(([listener, , isLimited]) => listener === name && isLimited)!;
    t.equal(await ask(ports[name]!, target, [], method), 200, `${name} ${target}`);
  }
  for (const [name, target, isLimited, method] of cases) {
    t.equal(await ask(ports[name]!, target, [], method), isLimited ? 429 : 200, `${name} ${target}`);
  }
});

besideEnvoy('Connection removes no field that changes the meaning of a request', async (t, program) => {
  const { ports } = await startProxy(t, {
    ...program,
    listeners: { plain: managerOf([answering({ prefix: '/' }, 'passed')]) },
  });
  const port = ports['plain']!;
  for (const name of ['X-Forwarded-For', 'x-forwarded-host', 'x-forwarded-proto', ':path', ':authority', 'host']) {
    t.equal(await ask(port, '/', [`connection: close, ${name}`]), 400, name);
  }
  for (const name of ['x-forwarded', 'x-forwarded-', 'hosts', 'x-role', 'x-request-id']) {
    t.equal(await ask(port, '/', [`connection: ${name}`]), 200, name);
  }
});

besideEnvoy('rules see the fields of an upgrade, and no transfer codings', async (t, program) => {
  const websocket = { upgrade_configs: [{ upgrade_type: 'websocket' }] };
  const { ports } = await startProxy(t, {
    ...program,
    listeners: {
      connection: denying({ header: { name: 'connection', string_match: { contains: 'pgrade' } } }, websocket),
      coding: denying({ header: { name: 'transfer-encoding', present_match: true } }),
      expect: denying({ header: { name: 'expect', present_match: true } }),
    },
  });
  for (const connection of ['upgrade', 'Upgrade', 'keep-alive, upgrade']) {
    const lines = [`connection: ${connection}`, 'upgrade: websocket'];
    t.equal(await ask(ports['connection']!, '/', lines), 403, connection);
  }
  t.equal(await ask(ports['connection']!, '/', ['connection: upgrade']), 200, 'a request without an upgrade');
  t.equal(await ask(ports['coding']!, '/', ['transfer-encoding: chunked'], 'POST'), 200);
  t.equal(await ask(ports['expect']!, '/', ['expect: 100-continue', 'expect: 100-continue']), 403);
});

besideEnvoy('targets are plain ASCII, and the hosts of URLs are names or addresses', async (t, program) => {
  const upstream = await startRawUpstream(t, ({ socket }) => {
    socket.write(response(200));
  });
  const { ports } = await startProxy(t, {
    ...program,
    listeners: { plain: managerOf([routeTo({ prefix: '/' }, 'host')]) },
    clusters: [staticCluster('host', upstream.port)],
  });
  const port = ports['plain']!;
  const refused = [
    '/caf\xe9',
    '/?a=\x80',
    'http://a_b/',
    'http://%61/',
    'http://a;b/',
    'http://a:/',
    'http://a:65536/',
  ];
  for (const target of [...refused, 'http://[::1%25eth0]/', 'http://[x]/', 'http://*/', 'https://a_b/'])
    t.equal(await ask(port, target), 400, target);
  const taken = { 'http://b.test/': 'b.test', 'HTTP://B-1.:080/': 'B-1.:080', 'http://[::1]:65535/': '[::1]:65535' };
  for (const [target, host] of Object.entries(taken)) {
    t.equal(await ask(port, target), 200, target);
    t.match(upstream.requests.at(-1)!.head.toLowerCase(), `host: ${host.toLowerCase()}`);
  }
  t.equal(await ask(port, '/', [], 'OPTIONS'), 200);
  t.match(upstream.requests.at(-1)!.head, /content-length: 0/);
});

besideEnvoy('an address in x-forwarded-for has no zone identifier', async (t, program) => {
  const client = [headerOption('x-client', '%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%')];
  const upstream = await startRawUpstream(t, ({ socket }) => {
    socket.write(response(200));
  });
  const { ports } = await startProxy(t, {
    ...program,
    listeners: { plain: managerOf([routeTo({ prefix: '/' }, 'host', {}, { request_headers_to_add: client })]) },
    clusters: [staticCluster('host', upstream.port)],
  });
  const cases = {
    'fc00::1%lo': '127.0.0.1',
    'fc00::1%eth0': '127.0.0.1',
    'fc00::1%4': 'fc00::1%4',
    'FC00:0::1': 'fc00::1',
  };
  for (const [written, address] of Object.entries(cases)) {
    await ask(ports['plain']!, '/', [`x-forwarded-for: ${written}`]);
    t.match(upstream.requests.at(-1)!.head, `x-client: ${address}`, written);
  }
});
