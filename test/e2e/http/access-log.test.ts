// Access logs: one accurate line for each request, whatever happens to the file and the process.

import { mkdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import {
  type Config,
  connectRaw,
  fileAccessLog,
  freePort,
  logLines,
  rawExchange,
  staticCluster,
  TRAILERS_CLUSTER,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { KeepAliveClient } from './keep-alive.js';
import { answering, managerOf, routeTo, startProxy } from './proxy.js';
import { response, startRawUpstream } from './raw-upstream.js';

const STREAM = 'type.googleapis.com/envoy.extensions.access_loggers.stream.v3.';
const directory = tempDir(t);
const file = (name: string) => join(directory, name);
const lines = (name: string) => logLines(file(name));
const withFormat = (name: string, log_format: Config): Config => {
  const log = fileAccessLog(file(name));
  return { ...log, typed_config: { ...(log['typed_config'] as Config), log_format } };
};
const text = (format: string) => ({ text_format_source: { inline_string: format } });

const upstream = await startRawUpstream(t, ({ path, socket }) => {
  if (path === '/end') socket.end();
  else if (path === '/garbage') socket.write('nonsense\r\n\r\n');
  else if (path === '/half') socket.end('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf');
  else if (path.startsWith('/stall')) socket.write('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf');
  else if (path === '/trailers') {
    socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nx-end: there\r\n\r\n');
  } else if (path === '/503') socket.write(response(503));
  else if (!path.startsWith('/hang')) socket.write(response(200, 'hello', { 'x-host': 'from host' }));
});

const closed = await freePort();
const flagged = [
  withFormat('flags', text('%REQ(:PATH)% %RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS%\n')),
  withFormat('ends', text('%DOWNSTREAM_LOCAL_ADDRESS% %DOWNSTREAM_REMOTE_ADDRESS%\n')),
];
const retry = {
  retry_policy: { retry_on: '5xx', retry_back_off: { base_interval: '0.001s', max_interval: '0.001s' } },
};
const proxy = await startProxy(t, {
  listeners: {
    formats: managerOf(
      [routeTo({ prefix: '/named' }, 'raw', {}, { name: 'the-route' }), routeTo({ prefix: '/' }, 'raw')],
      {
        access_log: [
          fileAccessLog(file('default')),
          withFormat('text', text(textFormat())),
          withFormat('json', { json_format: jsonFormat() }),
          withFormat('omitting', { ...text('[%REQ(x-none)%]\n'), omit_empty_values: true }),
          {
            name: 'out',
            typed_config: { '@type': `${STREAM}StdoutAccessLog`, log_format: text('out %REQ(:PATH)%\n') },
          },
          {
            name: 'err',
            typed_config: { '@type': `${STREAM}StderrAccessLog`, log_format: text('err %REQ(:PATH)%\n') },
          },
        ],
      },
    ),
    flags: managerOf(
      [
        answering({ path: '/direct' }, 'direct'),
        routeTo({ path: '/none' }, 'none'),
        routeTo({ path: '/closed' }, 'closed'),
        routeTo({ path: '/closed/retry' }, 'closed', retry),
        routeTo({ path: '/503' }, 'raw', retry),
        routeTo({ path: '/full' }, 'full'),
        routeTo({ path: '/hang/timeout' }, 'raw', { timeout: '0.1s' }),
        routeTo({ path: '/hang/idle' }, 'raw', { timeout: '0s', idle_timeout: '0.1s' }),
        routeTo({ path: '/stall/timeout' }, 'raw', { timeout: '0.1s' }),
        routeTo({ path: '/stall/idle' }, 'raw', { timeout: '0s', idle_timeout: '0.1s' }),
        { match: { path: '/unknown' }, route: { cluster_header: 'x-cluster' } },
        ...['/', '/end', '/garbage', '/half', '/hang'].map((path) => routeTo({ path }, 'raw')),
      ],
      { access_log: flagged },
    ),
    hosts: managerOf(
      [
        answering({ path: '/direct' }, 'direct'),
        { match: { path: '/redirect' }, redirect: { path_redirect: '/' } },
        { match: { path: '/unknown' }, route: { cluster_header: 'x-cluster' } },
        routeTo({ path: '/' }, 'raw'),
      ],
      { access_log: [withFormat('hosts', text('%REQ(:PATH)% %VIRTUAL_HOST_NAME%\n'))] },
    ),
    tries: managerOf(
      [
        routeTo({ path: '/hang' }, 'raw', { timeout: '0.1s' }),
        ...['none', 'closed', 'full', 'queue'].map((name) => routeTo({ path: `/${name}` }, name)),
        ...['/', '/end'].map((path) => routeTo({ path }, 'raw')),
      ],
      {
        access_log: [withFormat('tries', text('%REQ(:PATH)% %RESPONSE_FLAGS% %UPSTREAM_HOST% %UPSTREAM_PROTOCOL%\n'))],
      },
    ),
  },
  clusters: [
    staticCluster('raw', upstream.port),
    staticCluster('none', []),
    staticCluster('closed', closed),
    staticCluster('full', upstream.port, { circuit_breakers: { thresholds: [{ max_requests: 0 }] } }),
    staticCluster('queue', upstream.port, { circuit_breakers: { thresholds: [{ max_pending_requests: 0 }] } }),
  ],
  args: ['-l', 'warning', '--file-flush-interval-msec', '20'],
});

t.test('the default format, a custom format, and JSON', async (t) => {
  const id = '01234567-89ab-4def-8123-456789abcdef';
  const headers = { 'user-agent': 'agent/1', 'x-request-id': id, 'x-forwarded-for': '203.0.113.7', host: 'site.test' };
  await proxy.get('/named/path?q="1"', { method: 'POST', headers, body: 'abc' });
  const [usual] = await waitFor(() => (lines('default').length === 1 ? lines('default') : undefined));
  const time = '\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z';
  t.match(
    usual,
    new RegExp(
      `^\\[${time}\\] "POST /named/path\\?q="1" HTTP/1\\.1" 200 - 3 5 \\d+ \\d+ "203\\.0\\.113\\.7" "agent/1" ` +
        `"${id}" "site\\.test" "127\\.0\\.0\\.1:${upstream.port}"$`,
    ),
  );
  const [own] = await waitFor(() => (lines('text').length === 1 ? lines('text') : undefined));
  const fields = Object.fromEntries(own!.split('|').map((field) => field.split('=', 2) as [string, string]));
  t.match(fields, {
    route: 'the-route',
    host: 'all',
    cluster: 'raw',
    upstream: `127.0.0.1:${upstream.port}`,
    local: /^127\.0\.0\.1:\d+$/,
    to: `127.0.0.1:${proxy.port}`,
    from: /^127\.0\.0\.1:\d+$/,
    response: 'from host',
    cut: 'agen',
    missing: '-',
    stream: id,
    tries: '1',
    details: 'via_upstream',
    sent: /^\d+$/,
    first: /^\d+$/,
    taken: /^\d+$/,
    day: /^\d{2}\/\w{3}\/\d{4}$/,
    percent: '%',
  });
  const [json] = await waitFor(() => (lines('json').length === 1 ? lines('json') : undefined));
  const logged = JSON.parse(json!);
  t.match(logged, {
    code: 200,
    method: 'POST',
    path: '/named/path?q="1"',
    bytes: { in: 3, out: 5 },
    list: ['HTTP/1.1', 'fixed'],
    text: 'POST 200',
    nothing: null,
  });
  t.equal((await waitFor(() => (lines('omitting').length === 1 ? lines('omitting') : undefined)))[0], '[]');
  await waitFor(() => proxy.baton.stdout.includes('out /named/path?q="1"\n'));
  await waitFor(() => proxy.baton.stderr.includes('err /named/path?q="1"\n'));
});

t.test('a request is logged with its virtual host, whichever component answers it', async (t) => {
  const paths = ['/', '/direct', '/redirect', '/unknown', '/nowhere'];
  for (const path of paths) await proxy.on('hosts', path, { headers: { 'x-cluster': 'nobody' } });
  const logged = await waitFor(() => (lines('hosts').length === paths.length ? lines('hosts') : undefined));
  t.same(logged, ['/ all', '/direct all', '/redirect all', '/unknown all', '/nowhere -']);
});

t.test(
  'a request is logged with the host it was sent to, and with its protocol once it has a connection',
  async (t) => {
    const host = `127.0.0.1:${upstream.port}`;
    const expected = [
      `/ - ${host} HTTP/1.1`,
      `/end UC ${host} HTTP/1.1`,
      `/hang UT ${host} HTTP/1.1`,
      `/full UO ${host} -`,
      '/queue UO - -',
      `/closed UF 127.0.0.1:${closed} -`,
      '/none UH - -',
    ];
    for (const line of expected) await proxy.on('tries', line.split(' ')[0]!);
    t.same(await waitFor(() => (lines('tries').length === expected.length ? lines('tries') : undefined)), expected);
  },
);

t.test('response flags and details describe the outcome', async (t) => {
  const on = (path: string, headers: Record<string, string> = {}) => proxy.on('flags', path, { headers });
  const port = proxy.ports['flags']!;
  const disconnectDuring = async (leave: 'reset' | 'destroy') => {
    const { length } = upstream.requests;
    const client = await connectRaw(t, port);
    client.write('GET /hang HTTP/1.1\r\nhost: a\r\n\r\n');
    await waitFor(() => upstream.requests.length > length);
    client[leave]();
  };
  const cases: [string, string, () => Promise<unknown>][] = [
    ['/', '200 - via_upstream', () => on('/')],
    ['/direct', '200 - direct_response', () => on('/direct')],
    ['/nowhere', '404 NR route_not_found', () => on('/nowhere')],
    ['/unknown', '503 NC cluster_not_found', () => on('/unknown', { 'x-cluster': 'nobody' })],
    ['/none', '503 UH no_healthy_upstream', () => on('/none')],
    ['/closed', '503 UF upstream_reset_before_response_started{', () => on('/closed')],
    ['/closed/retry', '503 URX,UF upstream_reset_before_response_started{', () => on('/closed/retry')],
    ['/503', '503 URX via_upstream', () => on('/503')],
    ['/full', '503 UO upstream_reset_before_response_started{overflow}', () => on('/full')],
    ['/end', '503 UC upstream_reset_before_response_started{connection_termination}', () => on('/end')],
    ['/garbage', '502 UPE upstream_reset_before_response_started{protocol_error}', () => on('/garbage')],
    ['/half', '200 UPE upstream_reset_after_response_started{protocol_error}', () => on('/half').catch(() => {})],
    ['/hang/timeout', '504 UT response_timeout', () => on('/hang/timeout')],
    ['/hang/idle', '504 SI stream_idle_timeout', () => on('/hang/idle')],
    ['/stall/timeout', '200 UT response_timeout', () => on('/stall/timeout').catch(() => {})],
    ['/stall/idle', '200 SI stream_idle_timeout', () => on('/stall/idle').catch(() => {})],
    ['/hang', '0 DC downstream_remote_disconnect', () => disconnectDuring('reset')],
    ['/hang', '0 DC downstream_remote_disconnect', () => disconnectDuring('destroy')],
    [
      '/hang',
      '400 DPE ',
      () => rawExchange(port, 'POST /hang HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nnonsense\r\n'),
    ],
    ['- 400 DPE', 'http1.', () => rawExchange(port, 'nonsense\r\n\r\n')],
    ['/', '431 DPE http1.headers_too_large', () => rawExchange(port, `GET / HTTP/1.1\r\nx: ${'x'.repeat(70_000)}`)],
    ['/', '426 DPE low_version', () => rawExchange(port, 'GET / HTTP/1.0\r\n\r\n')],
  ];
  let count = 0;
  for (const [path, expected, act] of cases) {
    await act();
    count++;
    await waitFor(() => lines('flags').length >= count, { what: `a line for ${path} ${expected}` });
    const all = lines('flags');
    t.equal(all.length, count, 'one line');
    t.ok(all.at(-1)!.startsWith(`${path} ${expected}`), `${path} ${expected}: ${all.at(-1)}`);
  }
  const ends = await waitFor(() => (lines('ends').length === count ? lines('ends') : undefined));
  const expected = new RegExp(`^127\\.0\\.0\\.1:${port} 127\\.0\\.0\\.1:\\d+$`);
  t.same(
    ends.filter((line) => !expected.test(line)),
    [],
    'both addresses are logged, however the connection closed',
  );
});

t.test('the trailers of a response can be logged', async (t) => {
  const access_log = [withFormat('trailers', text('%REQ(:PATH)% %TRAILER(X-END)%\n'))];
  const { get } = await startProxy(t, {
    listeners: { main: managerOf([routeTo({ prefix: '/' }, 'raw')], { access_log }) },
    clusters: [staticCluster('raw', upstream.port, TRAILERS_CLUSTER)],
    args: ['-l', 'warning', '--file-flush-interval-msec', '20'],
  });
  for (const path of ['/trailers', '/']) t.equal((await get(path)).status, 200);
  t.same(await waitFor(() => (lines('trailers').length === 2 ? lines('trailers') : undefined)), [
    '/trailers there',
    '/ -',
  ]);
});

t.test('an unparsable request is logged with its response', async (t) => {
  const format =
    '%REQ(:METHOD)% %REQ(:PATH)% %REQ(USER-AGENT)% %PROTOCOL% %RESPONSE_CODE% %RESPONSE_FLAGS% %BYTES_SENT%\n';
  const access_log = [withFormat('unreadable', text(format))];
  const { port } = await startProxy(t, {
    listeners: {
      main: managerOf([answering({ prefix: '/' }, 'ok')], {
        access_log,
        common_http_protocol_options: { headers_with_underscores_action: 'REJECT_REQUEST' },
      }),
    },
    args: ['-l', 'warning', '--file-flush-interval-msec', '20'],
  });
  const head = (method: string) => `${method} /a?b HTTP/1.1\r\nuser-agent: me\r\n`;
  const cases: [request: string, line: string, body: string][] = [
    ['nonsense\r\n\r\n', '- - - HTTP/1.1 400 DPE 11', 'Bad Request'],
    [`GET /${'x'.repeat(70_000)}`, 'GET - - HTTP/1.1 431 DPE 31', 'Request Header Fields Too Large'],
    [`GET / HTTP/1.1\r\nx: ${'x'.repeat(70_000)}`, 'GET / - HTTP/1.1 431 DPE 31', 'Request Header Fields Too Large'],
    ['GET / HTTP/1.0\r\n\r\n', 'GET / - HTTP/1.1 426 DPE 16', 'Upgrade Required'],
    ['GET /a HTTP/1.1\nhost: x\r\n\r\n', 'GET /a - HTTP/1.1 400 DPE 11', 'Bad Request'],
    [`${head('GET')}\r\n`, 'GET /a?b me HTTP/1.1 400 - 0', ''],
    [`${head('GET')}host: a b\r\n\r\n`, 'GET /a?b me HTTP/1.1 400 DPE 11', 'Bad Request'],
    [`${head('GET')}x : y\r\n\r\n`, 'GET /a?b me HTTP/1.1 400 DPE 11', 'Bad Request'],
    [`${head('GET')}host: x\r\nx_y: z\r\n\r\n`, 'GET /a?b me HTTP/1.1 400 DPE 11', 'Bad Request'],
    // RFC 9110 section 9.3.2: a response to HEAD has no body, whatever its status.
    [`${head('HEAD')}x : y\r\n\r\n`, 'HEAD /a?b me HTTP/1.1 400 DPE 0', ''],
    [`${head('HEAD')}host: x\r\n\r\n${head('GET')}x : y\r\n\r\n`, 'GET /a?b me HTTP/1.1 400 DPE 11', 'Bad Request'],
  ];
  for (const [request, , body] of cases) {
    const answer = await rawExchange(port, request);
    t.equal(answer.text.slice(answer.text.lastIndexOf('\r\n\r\n') + 4), body);
  }
  const refusals = () => lines('unreadable').filter((line) => !line.endsWith('200 - 0'));
  await waitFor(() => refusals().length === cases.length);
  t.same(
    refusals(),
    cases.map(([, line]) => line),
  );
});

t.test('SIGUSR1 reopens a renamed file without losing a line', async (t) => {
  const { baton, ports } = await startProxy(t, {
    listeners: { main: managerOf([answering({ prefix: '/' }, 'ok')], { access_log: [idLog('rotated')] }) },
    args: ['-l', 'warning', '--concurrency', '2', '--file-flush-interval-msec', '20'],
  });
  const client = new KeepAliveClient(t, ports['main']!, 8);
  const sent: string[] = [];
  const send = (count: number) =>
    Promise.all(
      Array.from({ length: count }, () => {
        sent.push(`r${sent.length}`);
        return client.get('/', { 'x-id': sent.at(-1)! });
      }),
    );
  for (let round = 0; round < 3; round++) {
    await send(100);
    renameSync(file('rotated'), file(`rotated.${round}`));
    baton.child.kill('SIGUSR1');
    // Lines written during the reopening may go to either file.
    await send(100);
    const isNew = async () => {
      await send(10);
      return lines('rotated').length > 0;
    };
    await waitFor(isNew, { what: 'lines in a new file' });
  }
  await baton.stop();
  const parts = ['rotated.0', 'rotated.1', 'rotated.2', 'rotated'].map(lines);
  t.same(new Set(parts.flat()), new Set(sent));
  t.equal(parts.flat().length, sent.length, 'each once');
  t.ok(
    parts.every((part) => part.length > 0),
    `${parts.map((part) => part.length)} lines`,
  );
});

t.test('when the process has exited, the file has the complete lines of all workers', async (t) => {
  const { baton, ports } = await startProxy(t, {
    listeners: { main: managerOf([answering({ prefix: '/' }, 'ok')], { access_log: [idLog('ended')] }) },
    args: ['-l', 'warning', '--concurrency', '2'],
  });
  const client = new KeepAliveClient(t, ports['main']!, 8);
  const ids = Array.from({ length: 500 }, (_, index) => `${'x'.repeat(index % 50)}${index}`);
  await Promise.all(ids.map((id) => client.get('/', { 'x-id': id })));
  await baton.stop();
  t.same(lines('ended').sort(), ids.sort());
});

t.test('lines are counted as buffered while they wait, and as written afterwards', async (t) => {
  mkdirSync(file('first'));
  const { baton, get } = await startProxy(t, {
    listeners: {
      main: managerOf([answering({ prefix: '/' }, 'ok')], {
        access_log: [fileAccessLog(file('first/log'), '%REQ(x-id)%\n')],
      }),
    },
    args: ['-l', 'critical', '--file-flush-interval-msec', '3600000'],
  });
  const reopen = () => baton.admin('/reopen_logs', { method: 'POST' });
  const counts = (counts: Record<string, number>) => baton.waitForStats(under('filesystem.', counts));

  await get('/', { headers: { 'x-id': 'one' } });
  await counts({ write_buffered: 1, write_total_buffered: 4, write_completed: 0 });
  await reopen();
  await counts({ write_buffered: 1, write_total_buffered: 0, write_completed: 1, reopen_failed: 0 });

  renameSync(file('first'), file('second'));
  await get('/', { headers: { 'x-id': 'two' } });
  await reopen();
  await counts({ write_buffered: 2, write_total_buffered: 0, write_completed: 2, reopen_failed: 1 });
  t.same(lines('second/log'), ['one', 'two'], 'the old file stays in use when no new one can be created');
  await counts({ flushed_by_timer: 0, write_failed: 0, write_dropped: 0 });
});

t.test('lines flushed by the timer are counted', async (t) => {
  const { baton, get } = await startProxy(t, {
    listeners: { main: managerOf([answering({ prefix: '/' }, 'ok')], { access_log: [idLog('timed')] }) },
    args: ['-l', 'warning', '--file-flush-interval-msec', '10'],
  });
  for (let count = 1; count <= 2; count++) {
    await get('/', { headers: { 'x-id': 'r' } });
    await baton.waitForStats(under('filesystem.', { flushed_by_timer: count, write_completed: count }));
  }
});

t.test('lines lost to a full disk are counted', async (t) => {
  const { baton, ports } = await startProxy(t, {
    listeners: {
      main: managerOf([answering({ prefix: '/' }, 'ok')], {
        access_log: [fileAccessLog('/dev/full', `${'x'.repeat(64 * 1024)}\n`)],
      }),
    },
    args: ['-l', 'critical', '--concurrency', '1'],
  });
  const client = new KeepAliveClient(t, ports['main']!, 8);
  const requests = 300;
  await Promise.all(Array.from({ length: requests }, () => client.get('/')));
  // 8 MiB of lines are buffered.
  const waiting = 127;
  await baton.waitForStats(
    under('filesystem.', {
      write_buffered: requests,
      write_dropped: requests - waiting,
      write_total_buffered: waiting * (64 * 1024 + 1),
      write_completed: 0,
    }),
  );
  t.ok((await baton.stat('filesystem.write_failed'))! > 0);
});

function under(prefix: string, counts: Record<string, number>): Record<string, number> {
  return Object.fromEntries(Object.entries(counts).map(([name, count]) => [prefix + name, count]));
}

function idLog(name: string): Config {
  return withFormat(name, text('%REQ(x-id)%\n'));
}

function textFormat(): string {
  const fields = {
    route: '%ROUTE_NAME%',
    host: '%VIRTUAL_HOST_NAME%',
    cluster: '%UPSTREAM_CLUSTER%',
    upstream: '%UPSTREAM_HOST%',
    local: '%UPSTREAM_LOCAL_ADDRESS%',
    to: '%DOWNSTREAM_LOCAL_ADDRESS%',
    from: '%DOWNSTREAM_DIRECT_REMOTE_ADDRESS%',
    response: '%RESP(X-HOST)%',
    cut: '%REQ(USER-AGENT):4%',
    missing: '%REQ(x-none)%',
    stream: '%STREAM_ID%',
    tries: '%UPSTREAM_REQUEST_ATTEMPT_COUNT%',
    details: '%RESPONSE_CODE_DETAILS%',
    sent: '%REQUEST_TX_DURATION%',
    first: '%RESPONSE_DURATION%',
    taken: '%REQUEST_DURATION%',
    day: '%START_TIME(%d/%b/%Y)%',
    percent: '%%',
  };
  const all = Object.entries(fields).map(([name, operator]) => `${name}=${operator}`);
  return `${all.join('|')}\n`;
}

function jsonFormat(): Config {
  return {
    code: '%RESPONSE_CODE%',
    method: '%REQ(:METHOD)%',
    path: '%REQ(:PATH)%',
    bytes: { in: '%BYTES_RECEIVED%', out: '%BYTES_SENT%' },
    list: ['%PROTOCOL%', 'fixed'],
    text: '%REQ(:METHOD)% %RESPONSE_CODE%',
    nothing: '%REQ(x-none)%',
  };
}
