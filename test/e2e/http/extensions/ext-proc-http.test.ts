// ext_proc with a processor that is called by HTTP, and the end of calls that are not needed any more.

import { createServer } from 'node:http';
import { besideEnvoy } from '../../harness/envoy.js';
import { type Config, rawExchange, startUpstream, staticCluster, waitFor } from '../../harness/index.js';
import { startProcessedProxy } from './processed-proxy.js';

interface Question {
  readonly request_headers?: { readonly headers: { readonly headers: { key: string; raw_value: string }[] } };
  readonly response_headers?: object;
  readonly metadata_context: object;
}

const base64 = (text: string) => Buffer.from(text).toString('base64');

/** Answers of the processor by path. */
const ANSWERS: Readonly<Record<string, string>> = {
  '/broken': '{',
  '/nothing': '',
  '/denied': JSON.stringify({ immediateResponse: { status: { code: 'Forbidden' }, body: base64('no') } }),
};

besideEnvoy('a processor is called by HTTP', async (t, program) => {
  const questions: Question[] = [];
  const heads: unknown[] = [];
  const processor = await startUpstream(t, (request, answer) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const question = JSON.parse(Buffer.concat(chunks).toString()) as Question;
      const path = question.request_headers?.headers.headers.find(({ key }) => key === ':path')?.raw_value ?? '';
      const name = Buffer.from(path, 'base64').toString();
      questions.push(question);
      heads.push([request.method, request.url, request.headers]);
      if (name === '/failing') answer.statusCode = 500;
      if (name === '/silent') return;
      const set = { header: { key: 'x-new', rawValue: base64('http') } };
      const change = { requestHeaders: { response: { headerMutation: { setHeaders: [set] } } } };
      answer.end(ANSWERS[name] ?? JSON.stringify(question.request_headers ? change : { responseHeaders: {} }));
    });
  });
  const service = (more: Config = {}): Config => ({
    http_service: {
      http_service: {
        http_uri: { uri: 'http://processor.test/process?a=1', cluster: 'http', timeout: '10s' },
        request_headers_to_add: [{ header: { key: 'x-add', value: 'v' } }],
      },
    },
    ...more,
  });
  const proxy = await startProcessedProxy(t, program, {
    filters: {
      main: service(),
      open: service({ failure_mode_allow: true }),
      hasty: service({ message_timeout: '0.1s' }),
    },
    scripts: {},
    clusters: [staticCluster('http', processor.port)],
  });
  const get = async (name: string, path: string) => {
    const request = `GET ${path} HTTP/1.1\r\nhost: a.test\r\nconnection: close\r\n\r\n`;
    const { text } = await rawExchange(await proxy.port(name), request);
    return { status: Number(text.slice(9, 12)), text };
  };

  t.match(await get('main', '/any'), { status: 200, text: /"x-new":"http"/ });
  t.match(heads[0], ['POST', '/process?a=1', { 'content-type': 'application/json', 'x-add': 'v' }]);
  t.match(questions[0], { request_headers: { end_of_stream: true }, metadata_context: {}, protocol_config: {} });
  t.match(questions[1], { response_headers: {} });
  t.match(await get('main', '/denied'), { status: 403, text: /no$/ });
  for (const path of ['/broken', '/nothing', '/failing']) {
    t.equal((await get('main', path)).status, 500, path);
    t.equal((await get('open', path)).status, 200, path);
  }
  await proxy.lineWith('500 - ext_proc_error_HTTP_ERROR');
  t.equal((await get('hasty', '/silent')).status, 504);
  await proxy.baton.waitForStats({
    'http.main.ext_proc.http_not_ok_resp_received': 3,
    'http.main.ext_proc.streams_started': 0,
    'http.open.ext_proc.failure_mode_allowed': 3,
    'http.hasty.ext_proc.message_timeouts': 1,
  });
});

besideEnvoy('a call ends with the last answer that is needed', async (t, program) => {
  let isWaiting = false;
  let respond = () => {};
  const slow = createServer((_request, answer) => {
    respond = () => void answer.end('late');
    isWaiting = true;
  });
  await new Promise<void>((resolve) => slow.listen(0, '127.0.0.1', resolve));
  t.teardown(() => slow.close());
  const proxy = await startProcessedProxy(t, program, {
    filters: { main: { processing_mode: { response_header_mode: 'SKIP' } } },
    scripts: {},
    clusters: [staticCluster('slow', (slow.address() as { port: number }).port)],
    routes: [{ match: { prefix: '/late' }, route: { cluster: 'slow' } }],
  });
  const answer = rawExchange(await proxy.port('main'), 'GET /late HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n');
  await waitFor(() => proxy.callsOf('/late')[0]?.isClosed === true, { what: 'the end of the call' });
  await waitFor(() => isWaiting, { what: 'the request at the host' });
  respond();
  const { text } = await answer;
  t.match(text, /late/);
});
