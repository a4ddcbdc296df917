// local_reply_config: local replies have the status, headers and body of the connection manager's mappers and formats, and
// correct framing; host responses are unchanged.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import {
  bootstrap,
  type Config,
  connectRaw,
  fileAccessLog,
  freePort,
  httpListener,
  httpRequest,
  logLines,
  rawExchange,
  startBaton,
  staticCluster,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { allowing, CORS_CHAIN, corsPolicy, preflight } from './extensions/cors.js';
import { parseMessage } from './message.js';
import { answering, headerOption, managerOf, routeTo, startProxy } from './proxy.js';
import { response, startRawUpstream } from './raw-upstream.js';

const HTTP = 'type.googleapis.com/envoy.extensions.filters.http';
const ARGS = ['-l', 'warning', '--file-flush-interval-msec', '20'];
const directory = tempDir(t);
const file = (name: string) => join(directory, name);
const lines = (name: string) => logLines(file(name));

const text = (format: string, more: Config = {}): Config => ({
  text_format_source: { inline_string: format },
  ...more,
});
const status = (default_value: number, op = 'EQ'): Config => ({
  status_code_filter: { comparison: { op, value: { default_value, runtime_key: 'a' } } },
});
const asked = (name: string): Config => ({ header_filter: { header: { name, present_match: true } } });
/** Every reply reports its original and mapped status, and the request. */
const JSON_FORMAT: Config = {
  json_format: {
    status: '%RESPONSE_CODE%',
    message: '%LOCAL_REPLY_BODY%',
    path: '%REQ(:PATH)%',
    flags: '%RESPONSE_FLAGS%',
    details: '%RESPONSE_CODE_DETAILS%',
  },
};
const config: Config = {
  mappers: [
    { filter: asked('x-empty'), status_code: 503, body_format_override: text('') },
    { filter: asked('x-204'), status_code: 204 },
    {
      filter: asked('x-200'),
      status_code: 200,
      body: { inline_string: 'für alle' },
      body_format_override: text('%LOCAL_REPLY_BODY%'),
    },
    {
      filter: asked('x-large'),
      body: { inline_string: 'large '.repeat(100_000) },
      body_format_override: text('%LOCAL_REPLY_BODY%'),
    },
    {
      filter: { and_filter: { filters: [status(503), { response_flag_filter: { flags: ['UF'] } }] } },
      status_code: 502,
      headers_to_add: [
        headerOption('x-was', '%RESPONSE_CODE% %RESPONSE_FLAGS%'),
        headerOption('x-route', 'mapper', { append_action: 'OVERWRITE_IF_EXISTS_OR_ADD' }),
      ],
    },
    {
      filter: status(504, 'GE'),
      body_format_override: text('<p>%LOCAL_REPLY_BODY%: %REQ(:PATH)%</p>%DURATION%', {
        content_type: 'text/html; charset=UTF-8',
      }),
    },
    { filter: status(400), status_code: 422 },
    { filter: status(408), body_format_override: text('%LOCAL_REPLY_BODY% %DURATION%') },
  ],
  body_format: JSON_FORMAT,
};

const upstream = await startRawUpstream(t, ({ path, socket }) => {
  if (path === '/503') socket.write(response(503, 'own words'));
  else if (path === '/garbage') socket.write('nonsense\r\n\r\n');
  else if (!path.startsWith('/hang')) socket.write(response(200, 'hello'));
});
const log = '%REQ(:PATH)% %RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% %BYTES_SENT% %RESP(CONTENT-TYPE)%\n';
const routes = [
  answering({ path: '/direct' }, 'direct', { response_headers_to_add: [headerOption('x-route', 'direct')] }),
  { match: { path: '/redirect' }, redirect: { path_redirect: '/to' } },
  routeTo({ path: '/closed' }, 'closed', {}, { response_headers_to_add: [headerOption('x-route', 'route')] }),
  routeTo({ path: '/empty' }, 'empty'),
  routeTo({ path: '/hang/late' }, 'raw', { timeout: '0.05s' }),
  ...['/503', '/garbage', '/hang', '/ok'].map((path) => routeTo({ path }, 'raw')),
];
const access_log = [fileAccessLog(file('log'), log)];
const seen = { header: { key: 'x-seen', value: '%RESP(:STATUS)%' } };
const { baton, ports, on } = await startProxy(t, {
  listeners: {
    main: managerOf(routes, {
      local_reply_config: config,
      access_log,
      max_request_headers_kb: 1,
      request_headers_timeout: '0.3s',
      path_with_escaped_slashes_action: 'UNESCAPE_AND_REDIRECT',
      http_filters: [
        {
          name: 'mutation',
          typed_config: {
            '@type': `${HTTP}.header_mutation.v3.HeaderMutation`,
            mutations: { response_mutations: [{ append: seen }] },
          },
        },
        {
          name: 'fault',
          typed_config: {
            '@type': `${HTTP}.fault.v3.HTTPFault`,
            abort: { header_abort: {}, percentage: { numerator: 100 } },
          },
        },
        { name: 'router', typed_config: { '@type': `${HTTP}.router.v3.Router` } },
      ],
    }),
    plain: managerOf([answering({ path: '/direct' }, 'direct')]),
    cors: managerOf([routeTo({ prefix: '/' }, 'raw', {}, corsPolicy(allowing('https://a')))], {
      ...CORS_CHAIN,
      local_reply_config: config,
    }),
  },
  clusters: [
    staticCluster('raw', upstream.port),
    staticCluster('closed', await freePort()),
    staticCluster('empty', []),
  ],
  args: ARGS,
});
const main = ports['main']!;
const get = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
  on('main', path, { headers, method });
/** Parses the default format of a reply. */
const fields = (body: string) => JSON.parse(body) as Record<string, unknown>;

t.test('each local reply has the configured format, with its flags and details', async (t) => {
  const cases: [path: string, code: number, message: string, flags: string, details: string][] = [
    ['/none', 404, '', 'NR', 'route_not_found'],
    ['/direct', 200, 'direct', '-', 'direct_response'],
    ['/empty', 503, 'no healthy upstream', 'UH', 'no_healthy_upstream'],
  ];
  for (const [path, code, message, flags, details] of cases) {
    const answer = await get(path);
    t.match(answer, { status: code, headers: { 'content-type': 'application/json' } }, path);
    t.same(fields(answer.body), { status: code, message, path, flags, details }, path);
    t.equal(answer.headers['content-length'], String(answer.body.length), path);
    t.equal(answer.headers['x-seen'], String(code), 'filters see the mapped reply');
  }
  const garbage = await get('/garbage');
  t.equal(garbage.status, 502);
  t.match(fields(garbage.body), { status: 502, flags: 'UPE', path: '/garbage' });
});

t.test('a mapper changes the status that filters, logs and stats see', async (t) => {
  const before = await baton.stat('http.main.downstream_rq_5xx');
  const answer = await get('/closed');
  t.match(answer, { status: 502, headers: { 'x-was': '503 UF', 'x-route': 'mapper', 'x-seen': '502' } });
  t.match(fields(answer.body), { status: 502, message: /^upstream connect error/, flags: 'UF' });
  const line = await waitFor(() => lines('log').find((each) => each.startsWith('/closed ')));
  t.match(
    line,
    /^\/closed 502 UF upstream_reset_before_response_started\{remote_connection_failure\|.*\} \d+ application\/json$/,
  );
  t.equal(line.split(' ').at(-2), String(answer.body.length));
  await baton.waitForStat('http.main.downstream_rq_5xx', before! + 1);
  t.equal(await baton.stat('cluster.closed.upstream_rq_503'), 1, 'counters of the router keep the original status');
});

t.test('a late reply still has the properties of its request', async (t) => {
  const late = await get('/hang/late');
  t.match(late, { status: 504, body: /^<p>upstream request timeout: \/hang\/late<\/p>\d+$/ });
  t.ok(Number(late.body.split('</p>')[1]) >= 50, 'including its duration');
  t.equal(late.headers['content-type'], 'text/html; charset=UTF-8');
  t.match(await get('/hang/late', { 'x-200': '1' }), { status: 200, headers: { 'content-length': '9' } });
});

t.test('a mapped redirect is still a redirect, and may have a body', async (t) => {
  const answer = await get('/redirect');
  t.match(answer, { status: 301, headers: { location: /\/to$/, 'content-type': 'application/json' } });
  t.match(fields(answer.body), { status: 301, message: '' });
  t.match(await get('/a%2Fb'), { status: 307, headers: { location: /a\/b$/ }, body: /"status":307/ });
});

t.test('host responses are not mapped', async (t) => {
  t.match(await get('/503'), { status: 503, body: 'own words', headers: { 'content-type': undefined } });
  t.match(await get('/ok', { 'x-200': '1' }), { status: 200, body: 'hello' });
  t.match(
    await on('plain', '/direct'),
    { status: 200, body: 'direct' },
    'neither are replies of another connection manager',
  );
});

t.test('the response to a CORS preflight is not mapped', async (t) => {
  const { method, headers } = preflight('https://a', { 'x-204': '1', 'x-200': '1' });
  const answer = await on('cors', '/', { method, headers });
  t.match(answer, {
    status: 200,
    body: '',
    headers: { 'access-control-allow-origin': 'https://a', 'content-type': undefined },
  });
});

t.test('a reply to HEAD has the length and no body, and the connection continues', async (t) => {
  const client = await connectRaw(t, main);
  const request = (method: string, path: string, more = '') => `${method} ${path} HTTP/1.1\r\nhost: a\r\n${more}\r\n`;
  client.write(
    request('HEAD', '/none') +
      request('GET', '/none', 'x-200: 1\r\n') +
      request('GET', '/none', 'connection: close\r\n'),
  );
  const { text, closed } = await client.readToEnd();
  t.equal(closed, 'end');
  const first = parseMessage(text);
  t.match(first, { status: 404, headers: { 'content-type': 'application/json' } });
  const second = parseMessage(first.rest);
  t.match(second, { status: 200, headers: { 'content-type': 'text/plain', 'content-length': '9' } });
  t.equal(second.rest.slice(0, 9), Buffer.from('für alle').toString('latin1'));
  const third = parseMessage(second.rest.slice(9));
  t.match(third, { status: 404, headers: { 'content-length': first.headers['content-length'] } });
  t.equal(String(third.rest.length), first.headers['content-length']);
});

t.test('an empty body has no content-type, and a status without a body gets no body', async (t) => {
  const empty = await get('/direct', { 'x-empty': '1' });
  t.match(empty, { status: 503, body: '', headers: { 'content-length': '0', 'content-type': undefined } });
  const none = await get('/direct', { 'x-204': '1' });
  t.match(none, { status: 204, body: '', headers: { 'content-length': undefined, 'content-type': undefined } });
});

t.test('a large body arrives completely', async (t) => {
  const { body, headers, rawHeaders } = await get('/none', { 'x-large': '1' });
  t.equal(body, 'large '.repeat(100_000));
  t.equal(headers['content-length'], '600000');
  const names = rawHeaders.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase());
  t.equal(new Set(names).size, names.length, names.join());
});

t.test('a gRPC client gets the status of the mapper, and the body as grpc-message', async (t) => {
  const grpc = { 'content-type': 'application/grpc', te: 'trailers' };
  const closed = await get('/closed', grpc, 'POST');
  t.match(closed, { status: 200, body: '' });
  t.match(closed.headers, { 'content-type': 'application/grpc', 'grpc-status': '14', 'x-was': '503 UF' });
  t.match(JSON.parse(decodeURIComponent(closed.headers['grpc-message'] as string)), { status: 502 });
  const mapped = await get('/none', { ...grpc, 'x-200': '1' }, 'POST');
  t.match(mapped.headers, { 'grpc-status': '2', 'grpc-message': 'f%C3%BCr alle' });
  const exhausted = { ...grpc, 'x-envoy-fault-abort-grpc-request': '8' };
  t.equal((await get('/ok', exhausted, 'POST')).headers['grpc-status'], '8');
  t.equal(
    (await get('/ok', { ...exhausted, 'x-empty': '1' }, 'POST')).headers['grpc-status'],
    '14',
    'the grpc-status of 503',
  );
});

t.test('replies to unparsable requests are mapped too, without filters', async (t) => {
  const cases: [what: string, request: string, status: number, format: RegExp][] = [
    ['no HTTP', 'nonsense\r\n\r\n', 422, /"message":"Bad Request","path":null,"status":422/],
    [
      'a header section that is too large',
      `GET / HTTP/1.1\r\nhost: a\r\nx: ${'x'.repeat(2000)}\r\n\r\n`,
      431,
      /"status":431/,
    ],
    ['HTTP/1.0', 'GET / HTTP/1.0\r\n\r\n', 426, /"details":"low_version"/],
    [
      'no host',
      'GET /h HTTP/1.1\r\n\r\n',
      422,
      /"details":"missing_host_header","flags":"-","message":"","path":"\/h"/,
    ],
    [
      'an invalid body',
      'POST /hang HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n',
      422,
      /"path":"\/hang"/,
    ],
  ];
  for (const [what, request, code, format] of cases) {
    const { text, closed } = await rawExchange(main, request);
    const { status, headers, rest } = parseMessage(text);
    t.equal(status, code, what);
    t.match(rest, format, what);
    t.match(
      headers,
      { connection: 'close', 'content-type': 'application/json', 'content-length': String(rest.length) },
      what,
    );
    t.equal(closed, 'end', what);
  }
  const late = parseMessage((await rawExchange(main, 'GET /late HTTP/1.1\r\n')).text);
  t.match(late, { status: 408, rest: /^request header timeout \d+$/ }, 'a header section that does not arrive');
  t.ok(Number(late.rest.split(' ').at(-1)) >= 300, 'with the duration of the wait');
  await waitFor(() => lines('log').some((line) => line.includes('request_header_timeout')));
  t.ok(
    lines('log').some((line) => /^- 422 DPE http1\.codec_error \d+ application\/json$/.test(line)),
    lines('log').join('\n'),
  );
  const head = await rawExchange(main, 'HEAD /h HTTP/1.1\r\n\r\n');
  t.match(parseMessage(head.text), { status: 422, rest: '', headers: { 'content-length': /^[1-9]/ } });
  const none = await rawExchange(main, 'GET / HTTP/1.1\r\nx-204: 1\r\n\r\n');
  t.match(parseMessage(none.text), {
    status: 204,
    rest: '',
    headers: { 'content-length': undefined, connection: 'close' },
  });
});

t.test('a CONNECT mapped to 200 is answered and closed', async (t) => {
  const { text, closed } = await rawExchange(main, 'CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\nx-200: 1\r\n\r\n');
  t.match(parseMessage(text), { status: 200 });
  t.not(closed, 'open');
});

t.test('a reload replaces mappers and formats', async (t) => {
  const reloaded = (format: string) =>
    bootstrap({
      listeners: [httpListener('web', 0, managerOf([], { local_reply_config: { body_format: text(format) } }))],
      clusters: [],
    });
  const baton = await startBaton(t, { config: reloaded('one %RESPONSE_CODE%'), args: ARGS });
  t.match(await httpRequest(await baton.listenerPort('web'), '/'), { status: 404, body: 'one 404' });
  writeFileSync(baton.configPath, JSON.stringify(reloaded('two %RESPONSE_CODE%')));
  const { body } = await baton.admin('/config/reload?format=json&apply=true', { method: 'POST', deadlineMs: 60_000 });
  t.match(JSON.parse(body), { outcome: 'applied' });
  t.match(await httpRequest(await baton.listenerPort('web'), '/'), { status: 404, body: 'two 404' });
  await baton.stop();
});

t.test('invalid configurations are refused with their position', async (t) => {
  const wrong = `static_resources:
  listeners:
    - name: web
      address: { socket_address: { address: 127.0.0.1, port_value: 0 } }
      filter_chains:
        - filters:
            - name: http
              typed_config:
                "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
                stat_prefix: web
                local_reply_config:
                  mappers:
                    - status_code: 200
                    - filter: { metadata_filter: {} }
                      status_code: 600
                    - filter: { not_health_check_filter: {} }
                      body: { filename: /none }
                      headers_to_add:
                        - header: { key: content-length, value: "1" }
                      body_format_override:
                        text_format_source: { inline_string: "%NONSENSE%" }
                        formatters: [ { name: a } ]
                  body_format:
                    json_format: { a: "%LOCAL_REPLY_BODY:3%" }
                access_log:
                  - name: log
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.access_loggers.stream.v3.StdoutAccessLog
                      log_format:
                        text_format_source: { inline_string: "%LOCAL_REPLY_BODY:3%" }
                  - name: log
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.access_loggers.stream.v3.StdoutAccessLog
                      log_format:
                        content_type: text/plain
                        text_format_source: { inline_string: "%NONSENSE%" }
                http_filters:
                  - name: router
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
`;
  const refused = await startBaton(t, { config: wrong, args: ['--mode', 'validate'], wait: 'spawned' });
  t.match(await refused.exited, { code: 1 });
  const expected: [line: number, path: string, what: RegExp][] = [
    [13, 'mappers[0].filter', /required|set/],
    [14, 'mappers[1].filter.metadata_filter', /no dynamic metadata/],
    [15, 'mappers[1].status_code', /600/],
    [22, 'mappers[2].body_format_override.formatters', /the built-in operators of formats/],
    [30, 'access_log[0].typed_config.log_format.text_format_source.inline_string', /takes no length/],
    [35, 'access_log[1].typed_config.log_format.content_type', /no content type/],
    [36, 'access_log[1].typed_config.log_format.text_format_source.inline_string', /NONSENSE/],
  ];
  for (const [line, path, what] of expected) {
    const found = refused.stderr.split('\n').find((each) => each.includes(`${path}: `));
    t.ok(found?.includes(`config.yaml:${line}:`), `${path} in line ${line}: ${found ?? refused.stderr}`);
    t.match(found, what, path);
  }
});
