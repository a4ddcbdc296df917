// Requests that cannot be read are answered, counted and logged as Envoy 1.40 does: statuses, bodies and details are its answers.

import { join } from 'node:path';
import t from 'tap';
import {
  type Config,
  connectRaw,
  fileAccessLog,
  logLines,
  ROUTER_FILTER,
  rawExchange,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { parseMessage } from './message.js';
import { answering, managerOf, startProxy } from './proxy.js';

const MUTATION = 'type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutation';

const log = join(tempDir(t), 'log');
const lines = () => logLines(log);
const format = '%RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% %PROTOCOL% %BYTES_SENT% %RESP(SERVER)%\n';
const accessLog = fileAccessLog(log);
const mutations = { response_mutations: [{ append: { header: { key: 'x-added', value: 'yes' } } }] };
const proxy = await startProxy(t, {
  listeners: {
    main: managerOf([answering({ prefix: '/' }, 'ok')], {
      access_log: [
        {
          ...accessLog,
          typed_config: {
            ...(accessLog['typed_config'] as Config),
            log_format: { text_format_source: { inline_string: format } },
          },
        },
      ],
      http_filters: [{ name: 'mutation', typed_config: { '@type': MUTATION, mutations } }, ROUTER_FILTER],
    }),
  },
  args: ['--file-flush-interval-msec', '20'],
});
const { baton, port } = proxy;

const refusals: [what: string, request: string, status: number, details: string][] = [
  ['another protocol', 'nonsense\r\n\r\n', 400, 'http1.codec_error'],
  ['HTTP/1.0', 'GET / HTTP/1.0\r\nHost: a\r\n\r\n', 426, 'low_version'],
  ['HTTP/1.2', 'GET / HTTP/1.2\r\nHost: a\r\n\r\n', 426, 'low_version'],
  ['HTTP/0.9', 'GET /\r\n', 426, 'low_version'],
  ['a control character in the target', 'GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n', 400, 'http1.invalid_characters'],
  ['a byte above 127 in the target', 'GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n', 400, 'http1.codec_error'],
  ['a target that is no URL', 'GET a HTTP/1.1\r\nHost: a\r\n\r\n', 400, 'http1.codec_error'],
  ['another scheme', 'GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n', 400, 'http1.invalid_scheme'],
  ['an invalid authority', 'GET http://a:99999/ HTTP/1.1\r\nHost: a\r\n\r\n', 400, 'http1.invalid_url'],
  ['an invalid Host', 'GET / HTTP/1.1\r\nHost: a b\r\n\r\n', 400, 'http.invalid_authority'],
  ['a name with a space', 'GET / HTTP/1.1\r\nHost: a\r\nx : y\r\n\r\n', 400, 'http1.codec_error'],
  ['a head that is too large', `GET / HTTP/1.1\r\nHost: a\r\nx: ${'y'.repeat(70_000)}`, 431, 'http1.headers_too_large'],
];

t.test('a request that cannot be read gets a local reply with all its headers', async (t) => {
  const stat = (name: string) => baton.stat(`http.main.downstream_${name}`);
  for (const [count, [what, request, status, details]] of refusals.entries()) {
    const answer = parseMessage((await rawExchange(port, request)).text);
    t.match(
      answer,
      {
        status,
        headers: { 'content-type': 'text/plain', server: 'baton', date: /GMT$/, 'x-added': 'yes', connection: 'close' },
      },
      what,
    );
    t.match(
      answer.rest,
      { 400: 'Bad Request', 426: 'Upgrade Required', 431: 'Request Header Fields Too Large' }[status],
    );
    await waitFor(() => lines().length === count + 1);
    t.equal(lines().at(-1), `${status} DPE ${details} HTTP/1.1 ${answer.rest.length} baton`, what);
  }
  await baton.waitForStat('http.main.downstream_cx_protocol_error', refusals.length);
  t.equal(await stat('rq_rx_reset'), refusals.length);
  t.equal(await stat('rq_response_before_rq_complete'), refusals.length);
  t.equal(await stat('rq_active'), 0);
});

t.test('a target with a fragment is refused as a path', async (t) => {
  const before = await baton.stat('http.main.downstream_cx_protocol_error');
  const answer = parseMessage((await rawExchange(port, 'GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n')).text);
  t.match(answer, { status: 400, headers: { 'content-length': '0' } });
  await waitFor(() => lines().at(-1)?.startsWith('400 - path_normalization_failed '));
  t.equal(await baton.stat('http.main.downstream_rq_failed_path_normalization'), 1);
  t.equal(await baton.stat('http.main.downstream_cx_protocol_error'), before);
});

t.test('OPTIONS * has no route', async (t) => {
  const { text } = await rawExchange(port, 'OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n', { until: /\r\n\r\n/ });
  t.match(text, /^HTTP\/1\.1 404 /);
  await waitFor(() => lines().at(-1)?.startsWith('404 - absolute_path_rejected '));
});

t.test('empty lines before the first request are skipped', async (t) => {
  for (const empty of ['\r\n', '\n', '\r\n\r\n\n']) {
    const { text } = await rawExchange(port, `${empty}GET / HTTP/1.1\r\nHost: a\r\n\r\n`, { until: /ok$/ });
    t.match(text, /^HTTP\/1\.1 200 /);
  }
});

t.test('a connection has a protocol once it has sent a byte, and half a head is a request', async (t) => {
  const total = 'http.main.downstream_cx_http1_total';
  const requests = 'http.main.downstream_rq_total';
  const before = [await baton.stat(total), await baton.stat(requests)] as const;
  const silent = await connectRaw(t, port);
  silent.end();
  await silent.readToEnd();
  const half = await connectRaw(t, port);
  half.write('GET / HTTP/1.1\r\nHo');
  half.end();
  await half.readToEnd();
  await waitFor(() => lines().at(-1) === '0 DC downstream_remote_disconnect HTTP/1.1 0 -');
  await baton.waitForStat(requests, before[1]! + 1);
  t.equal(await baton.stat(total), before[0]! + 1);
  t.equal(await baton.stat('http.main.downstream_cx_destroy_remote_active_rq'), 1);
});
