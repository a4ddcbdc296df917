// Fields named by Connection are not forwarded, but clients cannot remove what the proxy adds.

import t from 'tap';
import { besideEnvoy } from '../../harness/envoy.js';
import { type EchoedRequest, rawExchange, startEchoUpstream, staticCluster } from '../../harness/index.js';
import { parseMessage } from '../message.js';
import { answering, managerOf, routeTo, startProxy } from '../proxy.js';
import { response, startRawUpstream } from '../raw-upstream.js';

t.test('a client that names forwarding fields in Connection does not suppress them', async (t) => {
  const echo = await startEchoUpstream(t);
  const proxy = await startProxy(t, {
    listeners: { edge: managerOf([routeTo({ prefix: '/' }, 'echo')], { use_remote_address: true }) },
    clusters: [staticCluster('echo', echo.port)],
  });
  const forged = ['x-forwarded-port', 'x-request-id', 'x-envoy-external-address', 'x-mine'];
  const answer = await proxy.get('/', {
    headers: {
      connection: [...forged, 'x-other x-other'].join(', '),
      'x-forwarded-for': '192.0.2.1',
      'x-forwarded-port': '1',
      'x-mine': '1',
      'x-other': '2',
    },
  });
  const { headers } = JSON.parse(answer.body) as EchoedRequest;
  t.match(headers['x-forwarded-for'], /^192\.0\.2\.1,/);
  t.equal(headers['x-forwarded-proto'], 'http');
  t.equal(headers['x-forwarded-port'], '1');
  t.equal(headers['x-envoy-external-address'], '127.0.0.1');
  t.type(headers['x-request-id'], 'string');
  t.equal(headers['x-mine'], undefined);
  t.equal(headers['x-other'], '2', 'an invalid name removes nothing');
});

t.test('of TE only "trailers" is forwarded', async (t) => {
  const echo = await startEchoUpstream(t);
  const proxy = await startProxy(t, {
    listeners: { main: managerOf([routeTo({ prefix: '/' }, 'echo')]) },
    clusters: [staticCluster('echo', echo.port)],
  });
  const cases: Readonly<Record<string, string | undefined>> = {
    trailers: 'trailers',
    'gzip, Trailers': 'trailers',
    'trailers;q=0.5,deflate;q=0.5': undefined,
    'gzip, deflate': undefined,
    'x-trailers': undefined,
  };
  for (const [te, expected] of Object.entries(cases)) {
    const { body } = await proxy.get('/', { headers: { connection: 'te', te } });
    t.equal((JSON.parse(body) as EchoedRequest).headers['te'], expected, te);
  }
});

t.test('hop-by-hop fields of informational responses are not forwarded', async (t) => {
  const early = 'HTTP/1.1 103 Early Hints\r\nconnection: x-hop\r\nupgrade: other\r\nx-hop: 1\r\nlink: </a>\r\n\r\n';
  const host = await startRawUpstream(t, ({ socket }) => socket.write(early + response(200)));
  const proxy = await startProxy(t, {
    listeners: { main: managerOf([routeTo({ prefix: '/' }, 'host')], { proxy_100_continue: true }) },
    clusters: [staticCluster('host', host.port)],
  });
  const { text } = await rawExchange(proxy.port, 'GET / HTTP/1.1\r\nhost: a\r\n\r\n', { until: /\r\n\r\n/ });
  const { status, headers } = parseMessage(text);
  t.equal(status, 103);
  t.same(headers, { link: '</a>' });
});

t.test('a Connection field with thousands of names does not block the worker', async (t) => {
  const named = (count: number) => ({ connection: Array(count).fill('x-a').join(), 'x-a': '1', 'x-b': '2' });
  const host = await startRawUpstream(t, ({ path, socket }) =>
    socket.write(response(200, 'ok', named(Number(path.slice(1))))),
  );
  const proxy = await startProxy(t, {
    listeners: { main: managerOf([routeTo({ prefix: '/' }, 'host')]) },
    clusters: [staticCluster('host', host.port)],
  });
  const few = await proxy.get('/99');
  t.equal(few.status, 200);
  t.match(few.headers, { 'x-a': undefined, 'x-b': '2' });
  t.equal((await proxy.get('/100')).status, 502);
});

besideEnvoy('route matching sees forwarded hop-by-hop fields, and that an upgrade is requested', async (t, program) => {
  const names = ['connection', 'keep-alive', 'proxy-connection', 'te', 'upgrade', 'x-named'];
  const routes = names.map((name) =>
    answering({ prefix: `/${name}/`, headers: [{ name, present_match: true }] }, 'seen'),
  );
  const { port } = await startProxy(t, {
    ...program,
    listeners: { http: managerOf(routes, { upgrade_configs: [{ upgrade_type: 'websocket' }] }) },
  });
  const upgrade = ['connection: upgrade', 'upgrade: websocket'];
  const cases: [name: string, lines: string[], isSeen: boolean][] = [
    ['connection', ['connection: keep-alive'], false],
    ['keep-alive', ['keep-alive: timeout=5'], false],
    ['proxy-connection', ['proxy-connection: close'], false],
    ['te', ['te: gzip'], false],
    ['te', ['te: trailers'], true],
    ['upgrade', ['upgrade: websocket'], false],
    ['upgrade', upgrade, true],
    ['connection', upgrade, true],
    ['x-named', ['connection: x-named', 'x-named: 1'], false],
  ];
  for (const [name, lines, isSeen] of cases) {
    const head = [`GET /${name}/ HTTP/1.1`, 'host: a', ...lines, '', ''].join('\r\n');
    const { text } = await rawExchange(port, head, { until: /\r\n\r\n/ });
    t.equal(parseMessage(text).status === 404, !isSeen, `${name}: ${lines.join(', ')}`);
  }
});
