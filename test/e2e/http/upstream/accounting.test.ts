// What requests that end in unusual ways leave in stats, logs and fields. The expected values are Envoy's.

import { join } from 'node:path';
import t from 'tap';
import {
  type Config,
  fileAccessLog,
  freePort,
  logLines,
  rawExchange,
  staticCluster,
  tempDir,
  waitFor,
} from '../../harness/index.js';
import { headerOption, managerOf, routeTo, startProxy } from '../proxy.js';
import { response, startRawUpstream } from '../raw-upstream.js';

const upstream = await startRawUpstream(t, ({ head, path, socket }) => {
  if (path === '/close') socket.end('HTTP/1.1 200 OK\r\n\r\nuntil the end');
  else if (path === '/600') socket.write('HTTP/1.1 600 Odd\r\ncontent-length: 0\r\n\r\n');
  else if (path === '/surplus') socket.write(`${response(200, 'ok')}junk`);
  else if (path === '/empty') socket.write('HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n');
  else if (path === '/chunked')
    socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n');
  else if (path === '/old') socket.write('HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 0\r\n\r\n');
  else socket.write(response(200, /^x-attempt: (.*)$/im.exec(head)?.[1] ?? ''));
});
const logFile = join(tempDir(t), 'log');
const log = fileAccessLog(logFile);
const log_format = {
  text_format_source: {
    inline_string:
      '%REQ(:PATH)% %UPSTREAM_HOST% %UPSTREAM_REMOTE_ADDRESS% %UPSTREAM_REQUEST_ATTEMPT_COUNT% %UPSTREAM_PROTOCOL%' +
      ' | %RESP(TRANSFER-ENCODING)% %RESP(CONTENT-LENGTH)% %REQUEST_DURATION% %RESPONSE_CODE_DETAILS%\n',
  },
};
const closedPort = await freePort();
const proxy = await startProxy(t, {
  listeners: {
    main: managerOf(
      [
        routeTo({ prefix: '/none' }, 'none'),
        routeTo({ prefix: '/closed' }, 'closed'),
        routeTo({ prefix: '/full' }, 'full'),
        {
          ...routeTo({ prefix: '/' }, 'host'),
          request_headers_to_add: [headerOption('x-attempt', '%UPSTREAM_REQUEST_ATTEMPT_COUNT%')],
        },
      ],
      { access_log: [{ ...log, typed_config: { ...(log['typed_config'] as Config), log_format } }] },
    ),
  },
  clusters: [
    staticCluster('none', []),
    staticCluster('closed', closedPort),
    staticCluster('full', upstream.port, { circuit_breakers: { thresholds: [{ max_requests: 0 }] } }),
    staticCluster('host', upstream.port),
  ],
  args: ['-l', 'warning', '--file-flush-interval-msec', '20'],
});
const logged = (path: string) =>
  waitFor(
    () =>
      logLines(logFile)
        .filter((line) => line.startsWith(`${path} `))
        .at(-1),
    { what: `a line of ${path}` },
  );

t.test('a request counts its first try before it has a host', async (t) => {
  t.equal((await proxy.get('/attempt')).body, '1');
  t.equal((await proxy.get('/none')).status, 503);
  t.match(await logged('/none'), /^\/none - - 1 - \|/);
  await proxy.baton.waitForStat('cluster.none.lb_healthy_panic', 1);
});

t.test('a host that a request is not connected to has no remote address', async (t) => {
  t.equal((await proxy.get('/closed')).status, 503);
  t.ok((await logged('/closed')).startsWith(`/closed 127.0.0.1:${closedPort} - 1 - |`));
});

t.test('the limit of requests counts as itself and as an error of the host', async (t) => {
  t.equal((await proxy.get('/full')).status, 503);
  await proxy.baton.waitForStats({
    'cluster.full.upstream_rq_active_overflow': 1,
    'cluster.full.upstream_rq_pending_overflow': 0,
  });
  t.match((await proxy.baton.admin('/clusters')).body, /^full::.*::rq_error::1$/m);
});

t.test('statuses from 600 on share a counter', async (t) => {
  t.equal((await proxy.get('/600')).status, 600);
  await proxy.baton.waitForStat('cluster.host.upstream_rq_unknown', 1);
});

t.test('a body that waits for a connection is not flow control', async (t) => {
  t.equal((await proxy.get('/closed', { method: 'POST', body: 'some' })).status, 503);
  t.equal((await proxy.get('/post', { method: 'POST', body: 'some' })).status, 200);
  t.equal(await proxy.baton.stat('http.main.downstream_flow_control_paused_reading_total'), 0);
});

t.test('connections count as ended by the side that ends them, with the request that they still had', async (t) => {
  const remote = (await proxy.baton.stat('cluster.host.upstream_cx_destroy_remote')) ?? 0;
  t.equal((await proxy.get('/close')).body, 'until the end');
  await proxy.baton.waitForStats({
    'cluster.host.upstream_cx_destroy_remote': remote + 1,
    'cluster.host.upstream_cx_destroy_with_active_rq': 0,
  });
  await rawExchange(proxy.port, 'POST /early HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nsome');
  await proxy.baton.waitForStat('cluster.host.upstream_cx_destroy_local_with_active_rq', 1);
});

t.test('the protocol of a host is that of its last response', async (t) => {
  t.equal((await proxy.get('/old')).status, 200);
  t.equal((await proxy.get('/after')).status, 200);
  t.match(await logged('/after'), / HTTP\/1\.0 \|/);
});

t.test('bytes after a response violate the protocol of the host, which ends its connection', async (t) => {
  const violations = 'cluster.host.upstream_cx_protocol_error';
  const before = (await proxy.baton.stat(violations)) ?? 0;
  t.match(await proxy.get('/surplus'), { status: 200, body: 'ok' });
  await proxy.baton.waitForStat(violations, before + 1);
  // The response to HEAD ends with its head.
  t.equal((await proxy.get('/chunked', { method: 'HEAD' })).status, 200);
  await proxy.baton.waitForStat(violations, before + 2);
});

t.test('a logged response has no transfer coding, and a 204 no length', async (t) => {
  t.equal((await proxy.get('/chunked')).body, 'ok');
  t.match(await logged('/chunked'), / \| - - \d+ via_upstream$/);
  t.equal((await proxy.get('/empty')).status, 204);
  t.match(await logged('/empty'), / \| - - \d+ via_upstream$/);
});

t.test('a response before the end of its request resets the request', async (t) => {
  const counts = async () =>
    Promise.all(
      ['response_before_rq_complete', 'rx_reset'].map(
        async (name) => (await proxy.baton.stat(`http.main.downstream_rq_${name}`)) ?? 0,
      ),
    );
  // The request, and whether it has arrived whole; its duration is known then.
  const cases: [name: string, path: string, request: string, isWhole: boolean, details: string][] = [
    [
      'a body that is not read',
      '/none/post',
      'POST /none/post HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n',
      false,
      'no_healthy_upstream',
    ],
    ['no Host', '/host', 'GET /host HTTP/1.1\r\n\r\n', true, 'missing_host_header'],
    [
      'no Host, and a body',
      '/host-and-body',
      'POST /host-and-body HTTP/1.1\r\ncontent-length: 3\r\n\r\nabc',
      false,
      'missing_host_header',
    ],
    ['a fragment', '/a#b', 'GET /a#b HTTP/1.1\r\nhost: a\r\n\r\n', true, 'path_normalization_failed'],
  ];
  for (const [name, path, request, isWhole, details] of cases) {
    const before = await counts();
    await rawExchange(proxy.port, request, { until: /\r\n\r\n/ });
    const line = await logged(path);
    t.match(line, isWhole ? /\| \S+ \S+ \d+ / : /\| \S+ \S+ - /, name);
    t.ok(line.endsWith(details), name);
    t.same(await counts(), isWhole ? before : before.map((count) => count + 1), name);
  }
});
