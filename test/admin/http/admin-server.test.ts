import { Agent, request } from 'node:http';
import t from 'tap';
import type { AdminHandler } from '../../../src/admin/admin-handler.js';
import { HANDLERS } from '../../../src/admin/handlers/index.js';
import { AdminTraffic } from '../../../src/admin/http/connections/admin-traffic.js';
import { StatsStore } from '../../../src/stats/store.js';
import { httpRequest } from '../../e2e/harness/http-client.js';
import { connectRaw, rawExchange } from '../../e2e/harness/raw-connection.js';
import { waitFor } from '../../e2e/harness/wait-for.js';
import { captureLog } from '../capture-log.js';
import { startAdmin } from '../fixture.js';

/** Answers with the request. */
const echo: AdminHandler = {
  path: '/echo',
  mutates: false,
  help: 'shows a request',
  parameters: [],
  handle: ({ query, body, path }) => ({
    body: JSON.stringify({ path, query: [...query.entries()], bytes: body.length }),
  }),
};
const broken: AdminHandler = {
  path: '/broken',
  mutates: false,
  help: 'fails',
  parameters: [],
  handle: ({ query }) => {
    const error = new Error('the disk is gone');
    if (query.has('later')) return Promise.reject(error);
    throw error;
  },
};
const handlers = [...HANDLERS, echo, broken];
const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

t.test('only the exact path of an endpoint is answered; other paths list the endpoints', async (t) => {
  const { port } = await startAdmin(t);
  for (const path of ['/stats/', '/STATS', '/stat', '/web/', '/stats%3Fformat=text', '/stats%2F', '/ready/x']) {
    const answer = await httpRequest(port, path);
    t.equal(answer.status, 404, path);
    t.match(answer.body, /^invalid path\. admin commands are:\n {2}\/: /);
  }
  t.equal((await httpRequest(port, '/ready?')).status, 200);
  t.match(await rawExchange(port, 'OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'), {
    text: /^HTTP\/1.1 404 /,
  });
});

t.test('paths are normalized before they are matched, as in Envoy', async (t) => {
  const { port } = await startAdmin(t, { allowPaths: [{ exact: '/ready' }, { prefix: '/ready?' }] });
  for (const path of [
    '//ready',
    '/./ready',
    '/x/../ready',
    '/%72eady',
    '///%72ead%79?a=//b',
    '/../ready',
    '/x/..//ready',
  ]) {
    t.match(await httpRequest(port, path), { status: 200, body: 'LIVE\n' }, path);
  }
  for (const path of ['/ready/../help', '/%68elp']) t.equal((await httpRequest(port, path)).status, 403, path);
  for (const target of ['/ready#a', '/ready?a#b', '/%00ready', '/ready%00']) {
    const head = `GET ${target} HTTP/1.1\r\nHost: a\r\n\r\n`;
    t.match(
      await rawExchange(port, head),
      { text: /^HTTP\/1\.1 400 [\s\S]*connection: close[\s\S]*\r\n\r\n$/i },
      target,
    );
  }
});

t.test('methods other than POST are answered alike by endpoints that change nothing', async (t) => {
  const { port } = await startAdmin(t);
  for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH', 'PURGE']) {
    t.match(await httpRequest(port, '/ready', { method }), { status: 200, body: /^LIVE\n$/ }, method);
  }
});

t.test('parameters are percent-decoded, and the first of equal names counts', async (t) => {
  const { port } = await startAdmin(t, { handlers });
  const queryOf = async (target: string) => {
    const { body } = await httpRequest(port, target);
    return JSON.parse(Buffer.from(body, 'latin1').toString()).query;
  };
  t.same(await queryOf('/echo'), []);
  t.same(await queryOf('/echo?a=1&a=2&flag&&empty=&b=x=y'), [
    ['a', '1'],
    ['flag', ''],
    ['empty', ''],
    ['b', 'x=y'],
  ]);
  t.same(await queryOf('/echo?%61%3d=%C3%A9%26&plus=a+b&bad=%zz%4'), [
    ['a=', 'é&'],
    ['plus', 'a+b'],
    ['bad', '%zz%4'],
  ]);
  t.same(await queryOf('/echo?__proto__=1&constructor=2'), [
    ['__proto__', '1'],
    ['constructor', '2'],
  ]);
});

t.test('a form provides the parameters if the URL has none', async (t) => {
  const { port } = await startAdmin(t, { handlers });
  const body = 'level=&key=a+b%2Bc';
  const posted = async (target: string, headers: Record<string, string>) =>
    JSON.parse((await httpRequest(port, target, { method: 'POST', headers, body })).body);
  t.same(await posted('/echo', FORM), {
    path: '/echo',
    query: [
      ['level', ''],
      ['key', 'a b+c'],
    ],
    bytes: body.length,
  });
  const withCharset = { 'content-type': 'Application/x-www-form-urlencoded; charset=UTF-8' };
  t.equal((await posted('/echo', withCharset)).query.length, 2);
  t.equal((await posted('/echo?', FORM)).query.length, 2);
  t.same((await posted('/echo?x=1', FORM)).query, [['x', '1']]);
  t.same((await posted('/echo', { 'content-type': 'text/plain' })).query, []);
});

t.test('a body that is too long is refused, and the connection stays open', async (t) => {
  const { port } = await startAdmin(t, { handlers });
  const post = (bytes: number) => httpRequest(port, '/echo', { method: 'POST', body: Buffer.alloc(bytes) });
  t.equal(JSON.parse((await post(1024 * 1024)).body).bytes, 1024 * 1024);
  t.match(await post(1024 * 1024 + 1), { status: 413, body: /larger than 1048576 bytes/ });
  t.match(await post(64 * 1024 * 1024), { status: 413 });
});

t.test('paths that are not allowed are refused before any other check', async (t) => {
  const allowPaths = [
    { exact: '/ready' },
    { prefix: '/stats' },
    { safe_regex: { regex: '/SERVER.*' }, ignore_case: true },
  ];
  const { services, port } = await startAdmin(t, { allowPaths });
  const status = async (path: string, method = 'GET') => (await httpRequest(port, path, { method })).status;
  t.equal(await status('/ready'), 200);
  t.equal(await status('/stats?filter=x'), 200);
  t.equal(await status('/statsx'), 404, 'allowed, but missing');
  t.equal(await status('/ready?x'), 403, 'the matcher applies to the query too');
  t.equal(await status('/server_info'), 403, 'an expression is case-sensitive');
  t.equal(await status('/quitquitquit', 'POST'), 403);
  t.equal(await status('/quitquitquit'), 403, 'instead of 400');
  t.match(await httpRequest(port, '/nowhere'), { status: 403, body: /^request to path \/nowhere not allowed$/ });
  t.same(services.calls, []);
});

t.test('each kind of matcher is applied', async (t) => {
  const { port } = await startAdmin(t, {
    allowPaths: [{ suffix: '/READY', ignore_case: true }, { contains: 'tener' }, { safe_regex: { regex: '/serv.*' } }],
  });
  for (const [path, status] of [
    ['/ready', 200],
    ['/listeners', 200],
    ['/server_info', 200],
    ['/clusters', 403],
  ] as const) {
    t.equal((await httpRequest(port, path)).status, status, path);
  }
  await t.rejects(startAdmin(t, { allowPaths: [{}] }), { code: 'CONFIG_INVALID', where: 'admin.allow_paths[0]' });
  await t.rejects(startAdmin(t, { allowPaths: [{ exact: '/' }, { safe_regex: { regex: '(' } }] }), {
    code: 'REGEX_INVALID',
    where: 'admin.allow_paths[1].safe_regex.regex',
  });
});

t.test('an endpoint that fails answers 500, and the server continues', async (t) => {
  const log = captureLog(t);
  const { port } = await startAdmin(t, { handlers });
  for (const path of ['/broken', '/broken?later']) {
    t.match(await httpRequest(port, path), { status: 500, body: /^\/broken failed: the disk is gone\n$/ });
  }
  t.equal((await httpRequest(port, '/ready')).status, 200);
  t.match(log.text(), /\[error\].*admin path "\/broken" failed: Error: the disk is gone/);
});

t.test('a refused mutation is logged', async (t) => {
  const log = captureLog(t);
  const { port } = await startAdmin(t);
  await httpRequest(port, '/quitquitquit?x', { method: 'PUT' });
  t.match(log.text(), /\[error\]\[admin\].* admin path "\/quitquitquit" mutates state, method=PUT rather than POST\n/);
});

t.test('HEAD returns the head of the answer, and the connection can be reused', async (t) => {
  const { services, port } = await startAdmin(t);
  for (let i = 0; i < 100; i++) services.addCluster({ name: `c${i}` });
  const answer = await rawExchange(
    port,
    'HEAD /clusters HTTP/1.1\r\nHost: a\r\n\r\nHEAD /ready HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
  );
  t.match(answer.text, /^HTTP\/1.1 200 OK\r\n(?:[^\r]+\r\n)+\r\nHTTP\/1.1 200 OK\r\n(?:[^\r]+\r\n)+\r\n$/);
});

t.test('pipelined requests are answered in order, including long answers', async (t) => {
  const { services, port } = await startAdmin(t);
  for (let i = 0; i < 500; i++) services.addCluster({ name: `c${i}` });
  const get = (path: string, more = '') => `GET ${path} HTTP/1.1\r\nHost: a\r\n${more}\r\n`;
  const { text } = await rawExchange(
    port,
    get('/clusters') + get('/ready') + get('/clusters?format=json') + get('/nowhere', 'Connection: close\r\n'),
  );
  const order = ['version_info::static', 'c499::added_via_api', 'LIVE', 'cluster_statuses', '"c499"', 'invalid path'];
  const places = order.map((part) => text.indexOf(part));
  t.notOk(places.includes(-1));
  t.same(
    places,
    [...places].sort((a, b) => a - b),
  );
  t.equal(text.match(/^HTTP\/1.1 /gm)?.length, 4);
});

t.test('a client that sends many requests without reading answers loses its connection', async (t) => {
  const { port } = await startAdmin(t);
  const count = 5000;
  const { text, closed } = await rawExchange(port, 'GET /echo HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(count));
  t.not(closed, 'open');
  t.ok((text.match(/^HTTP\/1.1 /gm)?.length ?? 0) < count, 'not every request is answered');
  t.match(await httpRequest(port, '/ready'), { status: 200 }, 'other clients are served');
});

t.test('requests of HTTP/1.0 and of clients behind a proxy are answered', async (t) => {
  const { port } = await startAdmin(t);
  const old = await rawExchange(port, 'GET /ready HTTP/1.0\r\n\r\n');
  t.match(old.text, /^HTTP\/1\.1 200 OK\r\n[\s\S]*\r\n\r\nLIVE\n$/);
  t.notMatch(old.text, /chunked/i);
  const whole = await rawExchange(
    port,
    'GET http://admin.example:9901/ready?x HTTP/1.1\r\nHost: b\r\nConnection: close\r\n\r\n',
  );
  t.match(whole.text, /^HTTP\/1\.1 200 OK\r\n[\s\S]*LIVE\n/);
});

t.test('the host of a whole URL replaces the Host header', async (t) => {
  const { port } = await startAdmin(t, { allowedHosts: ['ops'] });
  const ask = (url: string, host: string) =>
    rawExchange(port, `GET ${url} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
  t.match(await ask('http://ops:9901/ready', 'evil'), { text: /^HTTP\/1\.1 200 / });
  t.match(await ask('http://evil/ready', 'ops'), { text: /^HTTP\/1\.1 403 / });
});

t.test('upgrades to other protocols are ignored, and CONNECT is refused', async (t) => {
  const { port } = await startAdmin(t);
  const upgrade = 'GET /ready HTTP/1.1\r\nHost: a\r\nConnection: close, Upgrade\r\nUpgrade: h2c\r\n\r\n';
  t.match(await rawExchange(port, upgrade), { text: /^HTTP\/1\.1 200 OK\r\n/ });
  const tunnel = await rawExchange(port, 'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n');
  t.notMatch(tunnel.text, /^HTTP\/1\.1 2/);
  t.not(tunnel.closed, 'open');
  const expecting =
    'POST /ready HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n';
  const connection = await connectRaw(t, port);
  connection.write(expecting);
  await connection.readUntil('HTTP/1.1 100 Continue\r\n\r\n');
  connection.write('ok');
  t.match(await connection.readToEnd(), { text: /^HTTP\/1\.1 200 OK\r\n/ });
});

t.test('invalid HTTP gets 400, a head that is too long 431, and other clients are served meanwhile', async (t) => {
  const { port } = await startAdmin(t);
  for (const bytes of [
    '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
    'GET /ready HTTP/3.7\r\nHost: a\r\n\r\n',
    'GET /ready HTTP/1.1\r\nHost : a\r\n\r\n',
    'GET /ready HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    'GET /re ady HTTP/1.1\r\nHost: a\r\n\r\n',
    'POST /ready HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n',
  ]) {
    t.match(await rawExchange(port, bytes), { text: /^HTTP\/1\.1 400 Bad Request\r\n/ }, JSON.stringify(bytes));
  }
  t.match(await rawExchange(port, `GET /ready?${'x'.repeat(70_000)} HTTP/1.1\r\nHost: a\r\n\r\n`), {
    text: /^HTTP\/1\.1 431 /,
  });
  t.match(
    await rawExchange(port, `GET /ready?${'x=%41&'.repeat(9_000)} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`),
    {
      text: /^HTTP\/1\.1 200 /,
    },
  );
  t.equal((await httpRequest(port, '/ready')).status, 200);
});

t.test('a client that leaves at any point does not affect others', async (t) => {
  const { services, port } = await startAdmin(t);
  for (let i = 0; i < 500; i++) services.addCluster({ name: `c${i}` });
  for (const bytes of [
    '',
    'GET /clus',
    'GET /clusters HTTP/1.1\r\nHost: a\r\n',
    'POST /quitquitquit HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf',
    'GET /clusters HTTP/1.1\r\nHost: a\r\n\r\n',
    'GET /clusters HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(20),
  ]) {
    const connection = await connectRaw(t, port);
    connection.write(bytes);
    if (bytes.startsWith('GET /clusters HTTP/1.1\r\nHost: a\r\n\r\n')) await connection.readUntil('200 OK');
    connection.socket.resetAndDestroy();
  }
  t.match(await httpRequest(port, '/ready'), { status: 200, body: /^LIVE\n$/ });
  t.same(services.calls, [], 'an incomplete request has no effect');
});

t.test('a connection above the limit is closed and counted, and a closed one makes room', async (t) => {
  let held = 0;
  const connectionLimit = { tryAcquire: () => held === 0 && ++held > 0, release: () => void held-- };
  const store = new StatsStore({ workers: 1 });
  const { port } = await startAdmin(t, { connectionLimit, traffic: new AdminTraffic(store) });
  const first = await connectRaw(t, port);
  first.write('GET /ready HTTP/1.1\r\nHost: a\r\n\r\n');
  await first.readUntil('LIVE');
  const second = await connectRaw(t, port);
  t.equal((await second.readToEnd()).text, '');
  t.equal(store.value('listener.admin.downstream_global_cx_overflow'), 1);
  t.equal(store.value('http.admin.downstream_cx_total'), 1);
  first.destroy();
  await waitFor(() => held === 0, { what: 'room' });
  t.equal((await httpRequest(port, '/ready')).status, 200);
});

t.test('hundreds of persistent connections are served repeatedly', async (t) => {
  const { port } = await startAdmin(t, { maxConnections: 300 });
  const agent = new Agent({ keepAlive: true, maxFreeSockets: 300 });
  t.teardown(() => agent.destroy());
  const ports = new Set<number>();
  const get = (path: string) =>
    new Promise<number>((resolve, reject) => {
      request({ port, path, agent }, (answer) => {
        ports.add(answer.socket.localPort!);
        answer.resume().on('end', () => resolve(answer.statusCode!));
      })
        .on('error', reject)
        .end();
    });
  const paths = ['/ready', '/stats', '/server_info', '/clusters?format=json', '/help'];
  for (let round = 0; round < 3; round++) {
    const statuses = await Promise.all(Array.from({ length: 300 }, (_, i) => get(paths[i % paths.length]!)));
    t.same(new Set(statuses), new Set([200]));
  }
  t.equal(ports.size, 300, 'each connection was used in every round');
});
