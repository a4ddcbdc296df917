// ext_proc: failures amid bodies, and answers that change or replace what the processor has received of a body.

import { besideEnvoy } from '../../harness/envoy.js';
import { type Config, rawExchange, startUpstream, staticCluster } from '../../harness/index.js';
import { grpcService, passAll, type Script, startProcessedProxy } from './processed-proxy.js';
import { pass } from './processor.js';

const REQUEST_DUPLEX = { request_body_mode: 'FULL_DUPLEX_STREAMED', request_trailer_mode: 'SEND' };
const SILENT_BODY = { response_header_mode: 'SKIP', request_header_mode: 'SKIP' };

const base64 = (text: string) => Buffer.from(text).toString('base64');
const length = (value: string): Config => ({
  header_mutation: { set_headers: [{ header: { key: 'content-length', raw_value: base64(value) } }] },
});

const SCRIPTS: Readonly<Record<string, Script>> = {
  // Keeps the body.
  '/early': (kind, call) => {
    if (kind === 'request_headers') call.send(pass(kind));
  },
  '/replaced': (kind, call, question) => {
    if (kind === 'request_headers') return;
    if (kind !== 'request_body') return passAll(kind, call);
    if (question.request_body?.end_of_stream !== true) return;
    call.send(pass('request_headers', { status: 'CONTINUE_AND_REPLACE', body_mutation: { body: base64('fresh') } }));
  },
  '/not-replaced': (kind, call, question) => {
    if (question.request_body?.end_of_stream === true)
      call.send(pass('request_headers', { status: 'CONTINUE_AND_REPLACE' }));
    else if (!kind.startsWith('request')) passAll(kind, call);
  },
  '/override': (kind, call) =>
    call.send({
      ...pass(kind),
      ...(kind === 'request_headers' && { mode_override: { request_body_mode: 'BUFFERED' } }),
    }),
  '/override-all': (kind, call, question) => {
    const { body = new Uint8Array(), end_of_stream = false } = question.request_body ?? {};
    const streamed_response = { body: Buffer.from(body).toString('base64'), end_of_stream };
    if (kind === 'request_body') call.send(pass(kind, { body_mutation: { streamed_response } }));
    else call.send({ ...pass(kind), mode_override: {} });
  },
  '/longer': (kind, call) =>
    call.send(
      pass(kind, kind === 'request_headers' ? { ...length('100'), status: 'CONTINUE_AND_REPLACE' } : undefined),
    ),
  '/closing': (kind, call) => (kind === 'request_headers' ? call.send(pass(kind, length('100'))) : call.end()),
};

const FILTERS: Readonly<Record<string, Config>> = {
  unreachable: {
    failure_mode_allow: true,
    grpc_service: grpcService({ envoy_grpc: { cluster_name: 'nowhere' } }),
    processing_mode: { ...SILENT_BODY, request_body_mode: 'BUFFERED_PARTIAL' },
  },
  hasty: { failure_mode_allow: true, message_timeout: '1s', processing_mode: REQUEST_DUPLEX },
  duplex: { processing_mode: REQUEST_DUPLEX, allow_mode_override: true },
  early: { processing_mode: { request_body_mode: 'STREAMED' }, send_body_without_waiting_for_header_response: true },
  override: {
    processing_mode: { response_header_mode: 'SKIP', request_trailer_mode: 'SEND' },
    allow_mode_override: true,
  },
  buffered: { processing_mode: { request_body_mode: 'BUFFERED' }, failure_mode_allow: true },
};

interface Echo {
  readonly headers: Record<string, string>;
  readonly body: string;
}

besideEnvoy('nothing of a body is lost when its processing ends or changes', async (t, program) => {
  let complete = 0;
  // It responds before it has the body.
  const early = await startUpstream(t, (request, answer) => {
    request.on('error', () => {});
    request.on('end', () => complete++);
    request.resume();
    answer.write('early');
  });
  const proxy = await startProcessedProxy(t, program, {
    filters: FILTERS,
    scripts: SCRIPTS,
    routes: [{ match: { prefix: '/early' }, route: { cluster: 'early' } }],
    clusters: [{ name: 'nowhere', type: 'STATIC', connect_timeout: '1s' }, staticCluster('early', early.port)],
  });
  const post = async (name: string, path: string, kind: 'length' | 'trailers' = 'length') => {
    const framing =
      kind === 'length'
        ? 'content-length: 5\r\n\r\nhello'
        : 'transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nx-end: client\r\n\r\n';
    const head = `POST ${path} HTTP/1.1\r\nhost: a.test\r\nconnection: close\r\n`;
    const { text } = await rawExchange(await proxy.port(name), head + framing);
    const json = /\{"method".*\}/.exec(text)?.[0];
    return { status: Number(text.slice(9, 12)), echo: json === undefined ? undefined : (JSON.parse(json) as Echo) };
  };

  await t.test('a body passes whole if there is no processor', async (t) => {
    for (const kind of ['length', 'trailers'] as const)
      t.match(await post('unreachable', '/any', kind), { status: 200, echo: { body: 'hello' } }, kind);
  });

  await t.test('an answer about the head replaces a body that has been sent', async (t) => {
    for (const name of ['early', 'duplex'])
      t.match(await post(name, '/replaced'), { status: 200, echo: { body: 'fresh' } }, name);
  });

  await t.test('an answer changes only what it sets of the mode', async (t) => {
    t.match(await post('override', '/override', 'trailers'), { echo: { body: 'hello' } });
    t.same(proxy.callsOf('/override')[0]!.summary, ['request_headers', 'request_body:hello', 'request_trailers']);
    t.match(await post('duplex', '/override-all'), { echo: { body: 'hello' } }, 'or nothing of a conversation');
  });

  // Envoy waits without limit, loses the body, or sends a wrong length.
  if (program.command !== undefined) return;
  await t.test('a failure does not complete a body that the processor keeps', async (t) => {
    t.match(await post('hasty', '/early'), { status: 504 });
    t.equal(await proxy.lineWith('504'), '504 - ext_proc_error_per-message_timeout_exceeded');
    t.equal(complete, 0);
  });

  await t.test('lengths stay right', async (t) => {
    t.match(await post('early', '/not-replaced'), { echo: { body: 'hello' } });
    t.match(await post('duplex', '/not-replaced'), { status: 500 });
    t.match(await post('buffered', '/longer'), { echo: { body: 'hello', headers: { 'content-length': '5' } } });
    t.match(await post('buffered', '/closing'), { echo: { body: 'hello' } });
  });
});
