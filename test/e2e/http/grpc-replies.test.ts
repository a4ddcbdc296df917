// Local replies to gRPC clients.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import {
  type Config,
  fileAccessLog,
  freePort,
  type HttpAnswer,
  rawExchange,
  staticCluster,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { headerOption, managerOf, routeTo, startProxy } from './proxy.js';
import { response, startRawUpstream } from './raw-upstream.js';

const GRPC = { 'content-type': 'application/grpc', te: 'trailers' };

const upstream = await startRawUpstream(t, ({ path, socket }) => {
  if (path.startsWith('/served')) socket.write(response(503, 'own words'));
});
const logFile = join(tempDir(t), 'log');
const log = fileAccessLog(logFile);
const log_format = { text_format_source: { inline_string: '%REQ(:PATH)% %RESPONSE_CODE% %RESPONSE_FLAGS%\n' } };

const answering = (path: string, status: number, text: string): Config => ({
  match: { path },
  direct_response: { status, body: { inline_string: text } },
  response_headers_to_add: [headerOption('x-route', 'direct')],
});
const proxy = await startProxy(t, {
  listeners: {
    main: managerOf(
      [
        ...[400, 401, 403, 418, 429].map((status) => answering(`/${status}`, status, 'no')),
        answering('/words', 404, '100% ~ é\n'),
        answering('/own', 200, 'fine'),
        routeTo({ prefix: '/closed' }, 'closed'),
        routeTo({ prefix: '/hang' }, 'raw', { timeout: '0.2s' }),
        routeTo({ prefix: '/served' }, 'raw'),
      ],
      { access_log: [{ ...log, typed_config: { ...(log['typed_config'] as Config), log_format } }] },
    ),
  },
  clusters: [staticCluster('raw', upstream.port), staticCluster('closed', await freePort())],
  args: ['-l', 'warning', '--file-flush-interval-msec', '20'],
});
const call = (path: string, headers: Record<string, string> = GRPC): Promise<HttpAnswer> =>
  proxy.get(path, { method: 'POST', headers, body: 'call' });

t.test('a gRPC client gets a grpc-status in a trailers-only response', async (t) => {
  const cases: [string, string, string][] = [
    ['/400', '13', 'no'],
    ['/401', '16', 'no'],
    ['/403', '7', 'no'],
    ['/429', '14', 'no'],
    ['/418', '2', 'no'],
    ['/own', '2', 'fine'],
    ['/words', '12', '100%25 %7E %C3%A9%0A'],
    ['/hang', '14', 'upstream request timeout'],
  ];
  for (const [path, status, message] of cases) {
    const { status: http, headers, body } = await call(path);
    t.match({ http, body }, { http: 200, body: '' }, path);
    t.match(headers, { 'content-type': 'application/grpc', 'grpc-status': status, 'grpc-message': message }, path);
  }
  t.equal((await call('/400')).headers['x-route'], 'direct', 'with the headers that the route adds');
  const closed = await call('/closed');
  t.match(closed.headers['grpc-message'], /^upstream connect error or disconnect\/reset before headers\. /);
  const { headers } = await call('/nowhere');
  t.equal(headers['grpc-status'], '12');
  t.equal(headers['grpc-message'], undefined, 'no message for an empty body');
  t.match((await call('/400', { 'content-type': 'application/grpc+proto' })).headers, { 'grpc-status': '13' });
});

t.test('stats and logs have both statuses', async (t) => {
  t.equal(await proxy.baton.stat('cluster.closed.upstream_rq_503'), 1);
  const line = () => (existsSync(logFile) ? readFileSync(logFile, 'latin1').split('\n') : []);
  await waitFor(() => line().includes('/closed 200 UF') && line().includes('/hang 200 UT'));
});

t.test('other clients get plain HTTP responses, and host responses are unchanged', async (t) => {
  for (const type of ['application/grpc-web', 'application/grp', 'application/json', 'text/plain']) {
    const { status, headers, body } = await call('/403', { 'content-type': type });
    t.match({ status, body }, { status: 403, body: 'no' }, type);
    for (const name of ['grpc-status', 'grpc-message']) t.equal(headers[name], undefined, name);
  }
  t.match(await call('/served'), { status: 503, body: 'own words' });
  const { text } = await rawExchange(
    proxy.port,
    'HEAD /400 HTTP/1.1\r\nhost: a\r\ncontent-type: application/grpc\r\nconnection: close\r\n\r\n',
  );
  t.match(text, /^HTTP\/1\.1 200 [\s\S]*\r\ngrpc-status: 13\r\n/);
  t.notMatch(text, 'grpc-message');
});
