// ext_proc: bodies and trailers in all modes, and streams that the processor only observes.

import { besideEnvoy } from '../../harness/envoy.js';
import { type Config, connectRaw, httpRequest, rawExchange, waitFor } from '../../harness/index.js';
import { type Script, startProcessedProxy } from './processed-proxy.js';
import { pass, type QuestionKind } from './processor.js';

const DUPLEX = 'FULL_DUPLEX_STREAMED';
const LARGE = 4 * 1024 * 1024;

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

function field(key: string, value: string): Config {
  return { header: { key, raw_value: base64(value) } };
}

function body(text: string): Config {
  return { body_mutation: { body: base64(text) } };
}

function piece(bytes: Uint8Array | string, isLast: boolean): Config {
  const text = Buffer.from(bytes).toString('base64');
  return { body_mutation: { streamed_response: { body: text, end_of_stream: isLast } } };
}

/** Answers the kinds of questions of the table so, and lets the others pass. */
function answering(table: Partial<Record<QuestionKind, object>>): Script {
  return (kind, call) => call.send(pass(kind, table[kind]));
}

/** Returns each piece in a conversation. */
const echo: Script = (kind, call, question) => {
  if (!kind.endsWith('body')) return call.send(pass(kind));
  const { body: bytes = new Uint8Array(), end_of_stream: isLast = false } = question[kind as 'request_body']!;
  call.send(pass(kind, piece(bytes, isLast)));
};

/** The bytes of `/slow` that the processor has received and not answered. */
let unanswered = 0;
let mostUnanswered = 0;

const SCRIPTS: Readonly<Record<string, Script>> = {
  '/changed': answering({
    request_body: { ...body('REQUEST'), header_mutation: { set_headers: [field('x-late', '1')] } },
    request_trailers: { header_mutation: { set_headers: [field('x-more', 'added')], remove_headers: ['x-end'] } },
  }),
  '/changed-response': answering({
    response_body: body('RESPONSE'),
    response_trailers: { header_mutation: { set_headers: [field('x-more', 'added')] } },
  }),
  '/cleared': answering({ request_body: { body_mutation: { clear_body: true } } }),
  '/bad-head': answering({ request_body: { header_mutation: { set_headers: [field('x bad', '1')] } } }),
  '/in-pieces': answering({ request_body: piece('S', true) }),
  '/denied': (kind, call) =>
    call.send(
      kind === 'request_body' ? { immediate_response: { status: { code: 409 }, body: base64('no') } } : pass(kind),
    ),
  '/slow': (kind, call, question) => {
    const length = question.request_body?.body?.length ?? 0;
    unanswered += length;
    mostUnanswered = Math.max(mostUnanswered, unanswered);
    setImmediate(() => {
      unanswered -= length;
      call.send(pass(kind));
    });
  },
  '/echo': echo,
  '/rewritten': (kind, call, question) => {
    if (kind !== 'request_body') return echo(kind, call, question);
    if (question.request_body?.end_of_stream !== true) return;
    call.send(pass(kind, piece('one-', false)));
    call.send(pass(kind, piece('two', true)));
  },
  '/late-head': (kind, call, question) => {
    if (kind === 'request_headers') return;
    if (kind !== 'request_body') return echo(kind, call, question);
    if (question.request_body?.end_of_stream !== true) return;
    call.send(pass('request_headers', { header_mutation: { set_headers: [field('x-late', '1')] } }));
    call.send(pass(kind, piece('LATE', true)));
  },
  '/body-first': (kind, call) => {
    if (kind !== 'request_headers') call.send(pass(kind, piece('A', true)));
  },
  '/whole': answering({ request_body: body('N') }),
  '/too-many': (kind, call, question) => {
    echo(kind, call, question);
    if (question.request_body?.end_of_stream === true) call.send(pass(kind, piece('B', true)));
  },
  '/silent': () => {},
  '/overriding': (kind, call) =>
    call.send({
      ...pass(kind),
      mode_override: { request_body_mode: 'BUFFERED', response_header_mode: 'SKIP' },
    }),
  '/overriding-more': (kind, call) =>
    call.send({ ...pass(kind), mode_override: { request_body_mode: 'STREAMED', response_body_mode: 'STREAMED' } }),
};

function bodies(mode: string, more: Config = {}): Config {
  return { processing_mode: { request_body_mode: mode, response_body_mode: mode, ...more } };
}

function everything(mode: string, more: Config = {}): Config {
  const trailers = { request_trailer_mode: 'SEND', response_trailer_mode: 'SEND' };
  return { ...bodies(mode, trailers), ...more };
}

const FILTERS: Readonly<Record<string, Config>> = {
  none: everything('NONE'),
  buffered: everything('BUFFERED'),
  streamed: everything('STREAMED'),
  partial: everything('BUFFERED_PARTIAL'),
  headless: bodies('BUFFERED', { request_header_mode: 'SKIP', response_header_mode: 'SKIP' }),
  duplex: everything(DUPLEX),
  early: { ...bodies('STREAMED'), send_body_without_waiting_for_header_response: true },
  observed: everything('STREAMED', { observability_mode: true, deferred_close_timeout: '0.2s' }),
  override: { allow_mode_override: true },
  listed: {
    allow_mode_override: true,
    allowed_override_modes: [{ request_body_mode: 'BUFFERED', response_header_mode: 'SKIP' }],
  },
  late: {
    processing_mode: { request_header_mode: 'SKIP', request_body_mode: 'BUFFERED' },
    request_attributes: ['request.path', 'request.headers["x-a"]'],
  },
  attributes: {
    request_attributes: ['request.path', 'request.headers["x-a"]', 'request.nothing', 'source.address'],
    response_attributes: ['response.code'],
  },
};

interface Echo {
  readonly headers: Record<string, string>;
  readonly trailers: Record<string, string>;
  readonly body: string;
  readonly length: number;
}

besideEnvoy('a processor is asked about bodies and trailers and changes them', async (t, program) => {
  const proxy = await startProcessedProxy(t, program, { filters: FILTERS, scripts: SCRIPTS });
  /** Sends a request with a length, or in chunks with trailers. */
  const post = async (name: string, path: string, kind: 'length' | 'trailers' = 'length') => {
    const framing =
      kind === 'length'
        ? 'content-length: 5\r\n\r\nhello'
        : 'transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nx-end: client\r\n\r\n';
    const head = `POST ${path} HTTP/1.1\r\nhost: a.test\r\nx-a: 1\r\nconnection: close\r\n`;
    const { text } = await rawExchange(await proxy.port(name), head + framing);
    const json = /\{"method".*\}/.exec(text)?.[0];
    return {
      status: Number(text.slice(9, 12)),
      text,
      echo: json === undefined ? undefined : (JSON.parse(json) as Echo),
    };
  };

  await t.test('trailers without the body', async (t) => {
    const { echo, text } = await post('none', '/changed?trailers', 'trailers');
    t.match(echo, { body: 'hello', trailers: { 'x-more': 'added' } });
    t.notOk('x-end' in echo!.trailers);
    t.match(text, /x-end: host/);
    const summary = ['request_headers', 'request_trailers', 'response_headers', 'response_trailers'];
    t.same(proxy.callsOf('/changed?trailers')[0]!.summary, summary);
  });

  for (const name of ['buffered', 'partial'])
    await t.test(`${name}: the body, with changes of the head`, async (t) => {
      const { echo } = await post(name, '/changed', 'trailers');
      t.match(echo, { body: 'REQUEST', headers: { 'x-late': '1' }, trailers: { 'x-more': 'added' } });
      const { text } = await post(name, '/changed-response?trailers');
      t.match(text, /RESPONSE/);
      t.match(text, /x-more: added/);
      t.equal((await post(name, '/cleared', 'trailers')).echo!.length, 0);
      t.equal((await post(name, '/bad-head')).status, 500);
      t.match(await post(name, '/denied'), { status: 409, text: /no$/ });
    });

  await t.test('buffered: the length must stay right', async (t) => {
    t.match(await post('buffered', '/any'), { echo: { body: 'hello', headers: { 'content-length': '5' } } });
    t.equal((await post('buffered', '/changed')).status, 500);
    const line = await proxy.lineWith('mismatch');
    t.equal(line, '500 - mismatch_between_content_length_and_the_length_of_the_mutated_body');
    t.match(
      await post('headless', '/changed'),
      { echo: { body: 'REQUEST' } },
      'it is removed without a question about the head',
    );
  });

  await t.test('streamed: each piece has an answer', async (t) => {
    const { echo } = await post('streamed', '/changed', 'trailers');
    t.match(echo, { body: 'REQUEST', trailers: { 'x-more': 'added' } });
    t.match((await post('streamed', '/changed-response?trailers')).text, /RESPONSE.*x-more: added/s);
    t.match(await post('streamed', '/any'), { echo: { body: 'hello', headers: { 'transfer-encoding': 'chunked' } } });
    t.equal((await post('streamed', '/denied')).status, 409);
  });

  for (const name of ['streamed', 'duplex', 'early', 'observed'])
    await t.test(`${name}: large bodies pass whole`, async (t) => {
      const path = `/${name === 'duplex' ? 'echo' : 'any'}?size=${LARGE}`;
      const sent = Buffer.alloc(LARGE, 'r');
      const answer = await httpRequest(await proxy.port(name), path, { method: 'POST', body: sent });
      t.equal(answer.body.length, LARGE);
      const received = await httpRequest(await proxy.port(name), path.split('?')[0]!, { method: 'POST', body: sent });
      t.equal((JSON.parse(received.body) as Echo).length, LARGE);
    });

  await t.test('partial: the beginning is sent, and the rest follows', async (t) => {
    const sent = Buffer.alloc(LARGE, 'r');
    const answer = await httpRequest(await proxy.port('partial'), '/changed', { method: 'POST', body: sent });
    const received = JSON.parse(answer.body) as Echo;
    t.match(received.body, /^REQUESTr+$/);
    const [asked] = proxy
      .callsOf('/changed')
      .at(-1)!
      .questions.filter((question) => question.request_body !== undefined);
    t.equal(received.length, LARGE - asked!.request_body!.body!.length + 'REQUEST'.length);
  });

  await t.test('a slow processor holds back the client', async (t) => {
    unanswered = mostUnanswered = 0;
    const sent = Buffer.alloc(4 * LARGE, 'r');
    const answer = await httpRequest(await proxy.port('streamed'), '/slow', { method: 'POST', body: sent });
    t.equal((JSON.parse(answer.body) as Echo).length, sent.length);
    t.ok(mostUnanswered < LARGE, `${mostUnanswered} bytes`);
  });

  await t.test('duplex: answers are a body of their own', async (t) => {
    t.match(await post('duplex', '/echo'), { echo: { body: 'hello' } });
    t.match(await post('duplex', '/echo?trailers', 'trailers'), {
      echo: { body: 'hello', trailers: { 'x-end': 'client' } },
    });
    t.match(await post('duplex', '/rewritten'), { echo: { body: 'one-two' } });
    t.match(await post('duplex', '/late-head'), { echo: { body: 'LATE', headers: { 'x-late': '1' } } });
    for (const path of ['/body-first', '/whole', '/too-many']) t.equal((await post('duplex', path)).status, 500, path);
    await proxy.lineWith('Normal_body_mutation_response_is_received_while_body_mode__is_FULL_DUPLEX_STREAMED');
  });

  await t.test('early: the body does not wait for the answer about the head', async (t) => {
    t.match(await post('early', '/any'), { echo: { body: 'hello' } });
    const [call] = proxy.callsOf('/any').slice(-1);
    t.match(call!.questions[0]!.protocol_config, { send_body_without_waiting_for_header_response: true });
  });

  await t.test('observed: nothing waits for the processor', async (t) => {
    const { echo, status } = await post('observed', '/silent?trailers', 'trailers');
    t.equal(status, 200);
    t.match(echo, { body: 'hello', trailers: { 'x-end': 'client' } });
    const [call] = proxy.callsOf('/silent?trailers');
    await waitFor(() => call!.questions.length === 6, { what: 'all questions' });
    t.ok(call!.questions.every((question) => question.observability_mode === true));
    t.match(await post('observed', '/denied'), { echo: { body: 'hello' } }, 'answers have no effect');
    await waitFor(() => proxy.processor.calls.every((each) => each.isClosed), { what: 'the end of the calls' });
  });

  await t.test('an answer changes the mode', async (t) => {
    const changed = ['request_headers', 'request_body:hello;end'];
    await post('override', '/overriding');
    t.same(proxy.callsOf('/overriding').at(-1)!.summary, changed);
    await post('listed', '/overriding');
    t.same(proxy.callsOf('/overriding').at(-1)!.summary, changed);
    await post('listed', '/overriding-more');
    t.same(proxy.callsOf('/overriding-more').at(-1)!.summary, ['request_headers', 'response_headers']);
    await post('attributes', '/overriding');
    t.same(proxy.callsOf('/overriding').at(-1)!.summary, ['request_headers', 'response_headers']);
  });

  await t.test('the first question about a message has attributes', async (t) => {
    await post('attributes', '/attributes');
    const [request, response] = proxy.callsOf('/attributes')[0]!.questions;
    const values = request!.attributes!['envoy.filters.http.ext_proc']!.fields!;
    t.match(values, {
      'request.path': { stringValue: '/attributes' },
      'request.headers["x-a"]': { stringValue: '1' },
      'source.address': { stringValue: /^127\.0\.0\.1:\d+$/ },
    });
    t.notOk('request.nothing' in values);
    t.match(response!.attributes!['envoy.filters.http.ext_proc']!.fields, { 'response.code': { numberValue: 200 } });
  });

  await t.test('attributes of a request whose head is not processed are read with its body', async (t) => {
    const connection = await connectRaw(t, await proxy.port('late'));
    connection.write(
      'POST /late HTTP/1.1\r\nhost: a.test\r\nx-a: own\r\ncontent-length: 5\r\nexpect: 100-continue\r\n\r\n',
    );
    await connection.readUntil('100 Continue');
    // Its head takes the place of the first one.
    await post('none', `/other?${'x'.repeat(500)}`);
    connection.write('hello');
    await connection.readUntil('200 OK');
    const [question] = proxy.callsOf('/late')[0]!.questions;
    t.match(question!.attributes!['envoy.filters.http.ext_proc']!.fields, {
      'request.path': { stringValue: '/late' },
      'request.headers["x-a"]': { stringValue: 'own' },
    });
  });
});
