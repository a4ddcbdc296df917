// Requests that fail before they reach an endpoint are answered, counted and logged like others; a client that disconnects is
// not a protocol error.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import {
  bootstrap,
  connectRaw,
  fileAccessLog,
  loopback,
  rawExchange,
  startBaton,
  tempDir,
  waitFor,
} from '../harness/index.js';

const LOG = join(tempDir(t), 'admin.log');
const FORMAT = '%REQ(:METHOD)% %REQ(:PATH)% %RESPONSE_CODE% %RESPONSE_CODE_DETAILS% %RESPONSE_FLAGS%\n';
const baton = await startBaton(t, {
  config: bootstrap({
    listeners: [],
    clusters: [],
    extra: { admin: { address: loopback(0), access_log: [fileAccessLog(LOG, FORMAT)] } },
  }),
  args: ['--file-flush-interval-msec', '20'],
});
const port = baton.adminPort;
/** Fields of every response, these included. */
const FIELDS_OF_ALL = [
  'content-type: text/plain; charset=UTF-8',
  'cache-control: no-cache, max-age=0',
  'x-content-type-options: nosniff',
  'server: baton',
  'date: .* GMT',
  'connection: close',
];
const stat = async (name: string) => (await baton.stat(`http.admin.${name}`)) ?? 0;

for (const { what, bytes, status, line, isProtocolError } of [
  {
    what: 'garbage',
    bytes: 'garbage\r\n\r\n',
    status: 400,
    line: '- - 400 http1.codec_error DPE',
    isProtocolError: true,
  },
  {
    what: 'header sections that are too long',
    bytes: `GET /ready?${'x'.repeat(70_000)} HTTP/1.1\r\nHost: a\r\n\r\n`,
    status: 431,
    line: '- - 431 http1.headers_too_large DPE',
    isProtocolError: true,
  },
  {
    what: 'no Host',
    bytes: 'GET /ready HTTP/1.1\r\n\r\n',
    status: 400,
    line: 'GET /ready 400 missing_host_header -',
    isProtocolError: false,
  },
  {
    what: 'two Host headers',
    bytes: 'GET /ready HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n',
    status: 400,
    line: 'GET /ready 400 several_host_headers -',
    isProtocolError: false,
  },
  {
    what: 'a tunnel',
    bytes: 'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n',
    status: 403,
    line: 'CONNECT example.com:443 403 upgrade_failed -',
    isProtocolError: false,
  },
]) {
  t.test(what, async (t) => {
    const [requests, refused, errors] = [
      await stat('downstream_rq_total'),
      await stat('downstream_rq_4xx'),
      await stat('downstream_cx_protocol_error'),
    ];
    const { text, closed } = await rawExchange(port, bytes);
    t.match(text, new RegExp(`^HTTP/1\\.1 ${status} `));
    for (const field of FIELDS_OF_ALL) t.match(text, new RegExp(`^${field}\r$`, 'im'), field);
    t.equal(closed, 'end');
    await waitFor(() => readFileSync(LOG, 'utf8').split('\n').includes(line), { what: line });
    t.equal(await stat('downstream_rq_4xx'), refused + 1);
    // Each read of a stat is a request.
    t.equal(await stat('downstream_rq_total'), requests + 5);
    t.equal(await stat('downstream_cx_protocol_error'), errors + (isProtocolError ? 1 : 0));
  });
}

t.test('an unknown expectation is ignored', async (t) => {
  const bytes = 'GET /ready HTTP/1.1\r\nHost: a\r\nExpect: miracles\r\nConnection: close\r\n\r\n';
  t.match(await rawExchange(port, bytes), { text: /^HTTP\/1\.1 200 / });
});

t.test('clients that disconnect, at any point, are not protocol errors', async (t) => {
  const errors = await stat('downstream_cx_protocol_error');
  const left = await stat('downstream_cx_destroy_remote');
  const cuts = [
    'GET /re',
    'GET /ready HTTP/1.1\r\nHost: a\r\n',
    'POST /ready HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\na',
  ];
  for (const bytes of cuts) {
    for (const leave of ['end', 'reset'] as const) {
      const connection = await connectRaw(t, port);
      connection.write(bytes);
      // The server has handled it when it has answered a later request.
      await baton.admin('/ready');
      connection[leave]();
    }
  }
  await waitFor(async () => (await stat('downstream_cx_destroy_remote')) >= left + 2 * cuts.length, {
    what: 'the end of the connections',
  });
  t.equal(await stat('downstream_cx_protocol_error'), errors);
  t.ok((await stat('downstream_rq_rx_reset')) > 0);
  const { body } = await baton.admin('/stats?filter=^http.admin.downstream_rq_(completed|.xx)$');
  const [completed, ...classes] = body
    .trim()
    .split('\n')
    .map((line) => Number(line.split(' ')[1]))
    .reverse();
  t.equal(
    completed,
    classes.reduce((sum, count) => sum + count, 0),
    'the answered requests',
  );
  const timesAndAnswers = async () => {
    const text = (await baton.admin('/stats/monitoring?filter=^http.admin.downstream_rq')).body;
    const value = (name: string) =>
      Number(new RegExp(`^envoy_http_downstream_rq_${name}\\{.*\\} (\\d+)$`, 'm').exec(text)?.[1]);
    return { times: value('time_count'), answers: value('total') - value('rx_reset') };
  };
  const before = await timesAndAnswers();
  const after = await waitFor(
    async () => {
      const now = await timesAndAnswers();
      return now.times > before.times && now;
    },
    { what: 'the next flush' },
  );
  t.ok(after.times < after.answers, 'only answered requests have a time, and this one is not finished');
});
