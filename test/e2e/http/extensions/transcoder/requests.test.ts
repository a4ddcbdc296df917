// The requests that envoy.filters.http.grpc_json_transcoder makes. All results are Envoy's.

import type { Test } from 'tap';
import { besideEnvoy } from '../../../harness/envoy.js';
import { httpRequest } from '../../../harness/index.js';
import { frame } from '../grpc-host.js';
import { frames, RECORDED, routeRules, sharedTranscoders, type Transcoded } from './transcoded-host.js';

const proxies = sharedTranscoders({
  plain: {},
  strict: { request_validation_options: { reject_unknown_method: true, reject_unknown_query_parameters: true } },
  lenient: {
    request_validation_options: { reject_binding_body_field_collisions: true },
    auto_mapping: true,
    ignored_query_parameters: ['key', 'api.x'],
    query_param_unescape_plus: true,
    case_insensitive_enum_parsing: true,
    url_unescape_spec: 'ALL_CHARACTERS_EXCEPT_SLASH',
  },
  loose: {
    ignore_unknown_query_parameters: true,
    match_unregistered_custom_verb: true,
    url_unescape_spec: 'ALL_CHARACTERS',
  },
  captures: { capture_unknown_query_parameters: true },
  off: { route: routeRules({}) },
});

/** A request, and what became of it. Texts have one character a byte. */
interface Recorded {
  readonly method: string;
  readonly path: string;
  readonly body?: string;
  readonly status: number;
  readonly answer: string;
  /** The method of the call; empty: the request passed as it was. */
  readonly called?: string;
  /** The message, as hexadecimal text. */
  readonly sent?: string;
}

besideEnvoy(
  'paths, queries and JSON bodies become messages, or get the error that says why not',
  async (t, program) => {
    const proxy = (await proxies(program)).plain;
    for (const line of RECORDED.trim().split('\n')) {
      const { method, path, body, status, answer, called, sent } = JSON.parse(line) as Recorded;
      const before = proxy.calls.length;
      const sentBody = body === undefined ? undefined : Buffer.from(body, 'latin1');
      const response = await proxy.send(method, path, sentBody);
      const what = `${method} ${path} ${body ?? ''}`.slice(0, 100);
      t.equal(response.status, status, what);
      t.equal(response.body, answer, what);
      const call = proxy.calls[before];
      t.equal(call !== undefined, called !== undefined, what);
      if (call === undefined) continue;
      const { ':path': target, ':method': verb, te, 'content-type': type } = call.headers;
      if (called === '') t.match({ target, verb }, { target: path, verb: method }, what);
      else {
        t.match({ target, verb, te, type }, { target: `/test.library.Library/${called}`, verb: 'POST' }, what);
        t.match({ te, type }, { te: 'trailers', type: 'application/grpc' });
        t.equal(call.body.toString('hex'), frames(sent!), what);
        t.match(call.headers, { 'x-envoy-original-path': path, 'x-envoy-original-method': method });
      }
    }
  },
);

/** Sends requests and compares what they become. `sent`: the messages; undefined: no call; false: the request as it is. */
async function expectCalls(
  t: Test,
  proxy: Transcoded,
  cases: [target: string, body: string, status: number, sent: string[] | string | false][],
): Promise<void> {
  for (const [target, body, status, sent] of cases) {
    const [method, path] = target.split(' ') as [string, string];
    const before = proxy.calls.length;
    const answer = await proxy.send(method, path, body, { 'x-reply': frames('') });
    const call = proxy.calls[before];
    t.equal(answer.status, status, target + body.slice(0, 50));
    if (typeof sent === 'string') t.match({ call, body: answer.body }, { call: undefined, body: sent }, target);
    else if (sent === false) t.equal(call!.headers[':path'], path, `${target} passes`);
    else t.equal(call!.body.toString('hex'), frames(...sent), target + body.slice(0, 50));
  }
}

besideEnvoy('options decide about parameters, verbs, enums and unknown methods', async (t, program) => {
  const { strict, lenient, loose } = await proxies(program);
  const inType = (name: string, type: string) => `Could not find field "${name}" in the type "test.library.${type}".`;
  await expectCalls(t, strict, [
    ['GET /v1/nope', '', 404, 'Could not resolve /v1/nope to a method.'],
    ['PUT /v1/all/a?i32=1', '', 404, 'Could not resolve /v1/all/a to a method.'],
    ['GET /v1/all/a?nope=1', '', 400, inType('nope', 'Everything')],
    ['GET /v1/all/a?inner.nope=1', '', 400, inType('nope', 'Inner')],
    ['GET /v1/all/a?counts.a=1', '', 400, inType('a', 'Everything.CountsEntry')],
  ]);
  const collide = (bound: string, field: string, value: string) =>
    `The binding value "${bound}" of the field ${field} is conflicting with the value ${value} in the body.`;
  await expectCalls(t, lenient, [
    ['POST /test.library.Library/Plain', '{"text":"a"}', 200, ['0a0161']],
    ['POST /test.library.Library/Get', '{"text":"a"}', 200, false],
    ['GET /v1/all/a?key=1&api.x=2&i32=3', '', 200, ['0a01611003']],
    ['GET /v1/all/a?other=1', '', 200, false],
    ['GET /v1/int/5?text=a+b%2Bc&texts=+', '', 200, ['10050a056120622b6392010120']],
    ['GET /v1/all/a+b', '', 200, ['0a03612b62']],
    ['GET /v1/int/5?te%78t=x', '', 200, ['10050a0178']],
    ['GET /v1/all/a?kind=paper-back', '', 200, ['0a0161800101']],
    ['POST /v1/all', '{"kind":"Paper_Back"}', 200, ['800101']],
    ['GET /v1/deep/a%2Fb%21%20c', '', 200, ['8a010c120a0a086125324662212063']],
    ['POST /v1/bind/5', '{"i32":5}', 200, ['1005']],
    ['POST /v1/bind/5', '{"i32":6}', 400, collide('5', 'i32', '6')],
    ['POST /v1/bindName/n', '{"inner":{"name":"x"}}', 400, collide('n', 'name', '"x"')],
    ['POST /v1/bind/5?flag=true', '{"flag":false}', 400, collide('true', 'flag', 'false')],
  ]);
  await expectCalls(t, loose, [
    ['GET /v1/all/a?key=1&inner.nope=1&i32=3', '', 200, ['0a01611003']],
    ['GET /v1/all/a:b', '', 200, false],
    ['GET /v1/all/a:', '', 200, ['0a0161']],
    ['GET /v1/deep/a%2Fb%21/d', '', 200, ['8a010a12080a06612f62212f64']],
  ]);
});

besideEnvoy('a stream of messages is a JSON array, which may arrive in pieces', async (t, program) => {
  const proxy = (await proxies(program)).plain;
  await expectCalls(t, proxy, [
    ['POST /v1/chat', ' [ {"text":"a"} , {"text":"b"} ] ', 200, ['0a0161', '0a0162']],
    ['POST /v1/chat', '[]', 200, []],
    ['POST /v1/send/t?i32=5', '[{"i64":1},{"i64":2}]', 200, ['18010a01741005', '1802']],
    ['POST /v1/sendInner', '[{"name":"a"},{"name":"b"}]', 200, ['8a01030a0161', '8a01030a0162']],
    ['POST /v1/chat', '', 400, 'Expected an array instead of an object'],
    ['POST /v1/chat', '{"text":"a"}', 400, 'Expected an array instead of an object'],
    ['POST /v1/chat', '5', 400, 'Expected an array instead of a scalar value.'],
    ['POST /v1/chat', '[5]', 400, ': Root element must be a message.'],
    ['POST /v1/chat', '[{"text":"a"}', 400, 'Unexpected end of string. Expected , or ] after array value.\n\n^'],
    ['POST /v1/chat', '[{"text":"a"},{"i32":"x"}]', 400, 'i32: invalid value "x" for type TYPE_INT32'],
    ['POST /v1/chat', '[[{"text":"a"}]]', 400, ': Root element must be a message.'],
  ]);
  // The first message reaches the host before the second one is complete.
  const before = proxy.calls.length;
  const pieces = ['[{"te', 'xt":"a"}', ',{"text', '":"b\\"]}"}', ']'];
  const answer = await httpRequest(proxy.port, '/v1/chat', {
    method: 'POST',
    headers: { 'transfer-encoding': 'chunked' },
    body: pieces.join(''),
  });
  t.match(answer, { status: 200, body: '[{"text":"a"},{"text":"b\\"]}"}]' });
  t.equal(proxy.calls[before]!.body.toString('hex'), frames('0a0161', '0a0462225d7d'));
});

besideEnvoy('the body of a google.api.HttpBody is not JSON', async (t, program) => {
  const proxy = (await proxies(program)).captures;
  const url = 'type.googleapis.com/envoy.extensions.filters.http.grpc_json_transcoder.v3.UnknownQueryParams';
  const any = `0a5c${Buffer.from(url).toString('hex')}120c0a0a0a03782e7912030a0131`;
  await expectCalls(t, proxy, [
    ['POST /v1/upload', 'raw', 200, ['0a106170706c69636174696f6e2f6a736f6e1203726177']],
    ['POST /v1/upload', '', 200, ['0a106170706c69636174696f6e2f6a736f6e1200']],
    [
      'POST /v1/document/n?id=5&content.data=AA',
      'raw',
      200,
      ['12000a016e180512170a106170706c69636174696f6e2f6a736f6e1203726177'],
    ],
    [
      'POST /v1/document/n?x.y=1',
      'raw',
      200,
      [`12000a016e1285010a106170706c69636174696f6e2f6a736f6e1a6c${any}1203726177`],
    ],
    ['POST /v1/documents/n', 'raw', 200, ['12000a016e12170a106170706c69636174696f6e2f6a736f6e1203726177']],
  ]);
});

besideEnvoy('gRPC requests pass, and a route may switch the filter off', async (t, program) => {
  const { plain: on, off } = await proxies(program);
  const message = frame('').toString('latin1');
  for (const type of ['application/grpc', 'application/grpc+proto']) {
    t.match(await on.send('POST', '/v1/all', message, { 'content-type': type }), { status: 200, body: message });
    t.equal(on.calls.at(-1)!.headers[':path'], '/v1/all');
  }
  t.match(await off.send('GET', '/v1/all/a'), { status: 200 });
  t.equal(off.calls.at(-1)!.headers[':path'], '/v1/all/a');
});
