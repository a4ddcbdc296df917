// The responses that envoy.filters.http.grpc_json_transcoder makes. Results are Envoy's, except where a title says otherwise.

import t from 'tap';
import { besideEnvoy } from '../../../harness/envoy.js';
import { exchange, openSession } from '../../h2/http2-client.js';
import { frames, sharedTranscoders, type Transcoded } from './transcoded-host.js';

const proxies = sharedTranscoders({
  plain: {},
  converts: { convert_grpc_status: true },
  lines: { print_options: { stream_newline_delimited: true } },
  events: { print_options: { stream_sse_style_delimited: true } },
  spaced: {
    print_options: { add_whitespace: true, always_print_enums_as_ints: true, preserve_proto_field_names: true },
  },
  defaults: { print_options: { always_print_primitive_fields: true } },
  small: { max_request_body_size: 20, max_response_body_size: 30 },
  large: { max_request_body_size: 3_000_000, max_response_body_size: 3_000_000 },
});

const JSON_TYPE = 'application/json';

/** Returns a google.api.HttpBody, as hexadecimal text. */
function httpBody(type: string, data: string): string {
  const part = (field: number, text: string) => Buffer.concat([Buffer.from([field, text.length]), Buffer.from(text)]);
  return Buffer.concat([part(0x0a, type), part(0x12, data)]).toString('hex');
}

besideEnvoy('a message becomes JSON, and bytes that are not a message become an error', async (t, program) => {
  const proxy = (await proxies(program)).plain;
  const read = async (reply: string) => proxy.send('GET', '/v1/all/x', '', { 'x-reply': reply });
  const double = (value: number) => {
    const bytes = Buffer.alloc(8);
    bytes.writeDoubleLE(value);
    return `69${bytes.toString('hex')}`;
  };
  const good: [message: string, json: string][] = [
    ['', '{}'],
    ['f23f01610a0162', '{"text":"b"}'],
    ['9a0103010203', '{"numbers":[1,2,3]}'],
    ['10ffffffff0f', '{"i32":-1}'],
    ['80014d', '{"kind":77}'],
    ['f2010b08ffffffffffffffffff01', '{"lasting":"-1s"}'],
    ['fa01050a03615f31', '{"mask":"a1"}'],
    ['8a0200', '{}'],
    ['f00200', '{"nothing":null}'],
    ['7a03fffefd', '{"raw":"//79"}'],
    [double(1e15), '{"dbl":1e+15}'],
    [double(123456789012345680), '{"dbl":1.2345678901234568e+17}'],
    [double(0.00001), '{"dbl":1e-05}'],
    [double(5e-324), '{"dbl":4.94065645841247e-324}'],
    [double(1 / 3), '{"dbl":0.33333333333333331}'],
    [double(-0), '{"dbl":-0}'],
    ['65abaaaa3e', '{"flt":0.333333343}'],
    ['0a0b3c22c2ade280a8f3a08181', '{"text":"\\u003c\\"\\u00ad\\u2028\\udb40\\udc41"}'],
    ['9a0200', '{"any":{}}'],
  ];
  for (const [message, json] of good) t.match(await read(frames(message)), { status: 200, body: json }, json);
  t.match(await read(''), { status: 200, body: '', headers: { 'content-length': '0' } });
  t.match(await read(frames('0a0161', '0a0162')), { status: 200, body: '{"text":"a"}' }, 'one message counts');
  const why = 'because it would be parsed as a string';
  const bad: [reply: string, error: string][] = [
    ['00000000050a01', 'Incomplete gRPC frame expected size: 5 actual size: 2'],
    ['0000', 'Incomplete gRPC frame header received'],
    ['01000000030a0161', 'Unsupported gRPC frame flag: 1'],
    [frames('0a0561'), 'unexpected EOF'],
    [frames('0801'), 'field type 9 (number 1) does not support varint fields'],
    [frames('0a01ff'), 'proto3 strings must be UTF-8'],
    [frames('10011002'), 'repeated entries for singular field number 2'],
    [frames('8a020911000000000000f87f'), `google.protobuf.Value cannot encode double values for nan, ${why}`],
    [
      frames('9a02050a03612f62'),
      "Invalid type URL, type URLs must be of the form 'type.googleapis.com/<typename>', got: a/b",
    ],
  ];
  for (const [reply, error] of bad) t.match(await read(reply), { status: 502, body: error }, error);
});

besideEnvoy('the status of a call becomes that of the response', async (t, program) => {
  const proxy = (await proxies(program)).plain;
  const get = (headers: Record<string, string>) => proxy.send('GET', '/v1/all/x', '', headers);
  const statuses = [200, 499, 500, 400, 504, 404, 409, 403, 429, 400, 409, 400, 501, 500, 503, 500, 401, 500];
  for (const [code, status] of statuses.entries()) {
    const headers = { 'grpc-status': String(code), 'grpc-message': 'm%20', 'content-type': JSON_TYPE };
    const answer = await get({ 'x-status': String(code), 'x-message': 'm%20', 'x-reply': '' });
    t.match(answer, { status, body: '', headers: { ...headers, 'content-length': '0' } }, `status ${code}`);
  }
  t.match(await get({ 'x-status': 'x', 'x-reply': '' }), { status: 503 });
  t.match(await get({ 'x-status': '5' }), { status: 404, body: '{"text":"x"}' });
  const only = { 'x-only': '1', 'x-status': '5', 'x-message': 'gone' };
  t.match(await get(only), { status: 404, headers: { 'grpc-status': '5', 'grpc-message': 'gone' }, body: '' });
  const before = await proxy.hostErrors();
  await get({ 'x-status': '14', 'x-reply': '' });
  await get({ 'x-status': '5', 'x-only': '1' });
  t.equal(await proxy.hostErrors(), before + 1, 'a failed call is an error of the host');
  t.match(await get({ 'x-plain': '503' }), { status: 503, body: 'plain' }, 'what is not gRPC passes');
});

besideEnvoy('a status becomes the body of an error with convert_grpc_status', async (t, program) => {
  const proxy = (await proxies(program)).converts;
  const get = (path: string, headers: Record<string, string>) => proxy.send('GET', path, '', headers);
  const gone = { 'x-status': '5', 'x-message': 'no%20%C3%A9' };
  const json = { status: 404, body: '{"code":5,"message":"no Ã©"}', headers: { 'content-type': JSON_TYPE } };
  const only = await get('/v1/all/a', { ...gone, 'x-only': '1' });
  t.match(only, json);
  t.notOk('grpc-status' in only.headers);
  t.match(await get('/v1/all/a', { ...gone, 'x-reply': '' }), json);
  t.match(await get('/v1/all/a', { 'x-status': '5', 'x-message': 'gone' }), { status: 404, body: '{"text":"a"}' });
  const type = Buffer.from('type.googleapis.com/test.library.Inner').toString('hex');
  const status = Buffer.from(`080512046e6f70651a2f0a26${type}12050a03616263`, 'hex').toString('base64');
  t.equal(
    (await get('/v1/all/a', { 'x-only': '1', 'x-status': '5', 'x-details': status })).body,
    '{"code":5,"message":"nope","details":[{"@type":"type.googleapis.com/test.library.Inner","name":"abc"}]}',
  );
  const begun = { status: 200, body: '{"code":5}' };
  t.match(await get('/v1/watch', { 'x-status': '5', 'x-reply': '' }), begun, 'its status has been sent');
  t.match(await get('/v1/watch', { 'x-status': '5', 'x-only': '1' }), { status: 404, body: '{"code":5}' });
});

besideEnvoy('a stream is an array, lines or events', async (t, program) => {
  const reply = { 'x-reply': frames('0a0161', '0a0162') };
  const { plain, lines, events } = await proxies(program);
  const cases: [proxy: Transcoded, type: string, two: string, none: string][] = [
    [plain, JSON_TYPE, '[{"text":"a"},{"text":"b"}]', '[]'],
    [lines, JSON_TYPE, '{"text":"a"}\n{"text":"b"}\n', ''],
    [events, 'text/event-stream', 'data: {"text":"a"}\n\ndata: {"text":"b"}\n\n', ''],
  ];
  for (const [proxy, type, two, none] of cases) {
    const headers = { 'content-type': type };
    t.match(await proxy.send('GET', '/v1/watch', '', reply), { status: 200, headers, body: two });
    t.match(await proxy.send('GET', '/v1/watch', '', { 'x-reply': '' }), { status: 200, headers, body: none });
    const only = await proxy.send('GET', '/v1/watch', '', { 'x-only': '1', 'x-status': '5' });
    t.match(only, { status: 404, headers, body: none });
  }
});

besideEnvoy('print options', async (t, program) => {
  const { spaced: all, defaults } = await proxies(program);
  const spaced = await all.send('GET', '/v1/all/a', '', {
    'x-reply': frames('0a0161800102920101628a0100ea010208059a0100'),
  });
  t.match(spaced, { status: 200 });
  t.equal(
    spaced.body,
    '{\n "text": "a",\n "kind": 2,\n "inner": {},\n "texts": [\n  "b"\n ],\n "at_time": "1970-01-01T00:00:05Z"\n}\n',
  );
  const printed = await defaults.send('GET', '/v1/all/a', '', { 'x-reply': frames('') });
  const parsed = JSON.parse(printed.body) as Record<string, unknown>;
  t.match(parsed, {
    text: '',
    i32: 0,
    i64: '0',
    flag: false,
    raw: '',
    kind: 'UNKNOWN',
    texts: [],
    counts: {},
    nothing: null,
  });
  t.notOk('maybe' in parsed || 'inner' in parsed || 'firstChoice' in parsed, 'fields with presence are not printed');
});

besideEnvoy('the content of a google.api.HttpBody is the body', async (t, program) => {
  const proxy = (await proxies(program)).plain;
  const get = (path: string, reply: string) => proxy.send('GET', path, '', { 'x-reply': reply });
  const page = frames(httpBody('text/html', '<p>'));
  const headers = { 'content-type': 'text/html' };
  t.match(await get('/v1/download', page), {
    status: 200,
    headers: { ...headers, 'content-length': '3' },
    body: '<p>',
  });
  t.match(await get('/v1/download', ''), { status: 200, headers: { 'content-type': JSON_TYPE }, body: '' });
  const parts = frames('', httpBody('text/html', '<p>'), httpBody('text/x', 'q'));
  t.match(await get('/v1/downloads', parts), { status: 200, headers, body: '<p>q' });
  const inner = httpBody('a/b', 'q');
  t.match(await get('/v1/document', frames(`0a016112${Buffer.from([inner.length / 2]).toString('hex')}${inner}`)), {
    status: 200,
    headers: { 'content-type': 'a/b' },
    body: 'q',
  });
});

besideEnvoy('messages have limits', async (t, program) => {
  const { small: proxy, large } = await proxies(program);
  const tooLarge = "the transcoder's internal buffer size exceeds the configured limit.";
  const text = (count: number) => `{"text":"${'a'.repeat(count)}"}`;
  t.match(await proxy.send('POST', '/v1/all', text(9)), { status: 200, body: text(9) });
  const refused = { status: 413, body: `Request rejected because ${tooLarge}` };
  t.match(await proxy.send('POST', '/v1/all', text(10)), refused);
  t.match(await proxy.send('POST', '/v1/upload', 'a'.repeat(21)), refused);
  t.match(await proxy.send('POST', '/v1/chat', `[${text(10)}]`), refused);
  t.match(await proxy.send('GET', `/v1/all/${'a'.repeat(20)}`), { status: 200 });
  const long = await proxy.send('GET', `/v1/all/${'a'.repeat(40)}`);
  t.match(long, { status: 500, body: `Response not transcoded because ${tooLarge}` });
  t.match(await large.send('POST', '/v1/all', text(1_500_000)), { status: 200, body: text(1_500_000) });
  // Envoy's gauge keeps growing.
  if (program.command === undefined)
    t.match(await large.stats('http.large.transcoder_'), { request_buffer_bytes: 0, response_buffer_bytes: 0 });
});

t.test('what makes Envoy abort is answered', async (t) => {
  const proxy = (await proxies({ command: undefined })).plain;
  const get = (path: string, reply: string) => proxy.send('GET', path, '', { 'x-reply': reply });
  t.match(await get('/v1/all/x', frames('b201030a0161')), { status: 200, body: '{"counts":{"a":0}}' });
  t.match(await get('/v1/all/x', frames('b201021001')), { status: 200, body: '{"counts":{"":1}}' });
  t.match(await proxy.send('POST', '/v1/all', '{"counts":{"a":null}}'), { status: 200, body: '{"counts":{"a":0}}' });
  t.match(await get('/v1/download', frames(httpBody('a\r\nb: c', 'q'))), { status: 502 }, 'no header is smuggled');
  await t.rejects(get('/v1/watch', `${frames('0a0161')}00000000090a`), 'the client sees that the stream is truncated');
  t.match(await proxy.send('POST', '/v1/number', '5'), { status: 200, body: '{"i32":5}' });
});

t.test('the response to a HEAD request over HTTP/2 has no body', async (t) => {
  const { port } = (await proxies({ command: undefined })).plain;
  const session = openSession(t, port);
  const answer = await exchange(session, '/v1/any/a', { headers: { ':method': 'HEAD' } });
  t.match(answer, { status: 200, headers: { 'content-length': '12' }, body: '', resetCode: 0 });
});

t.test('deep and broken input is refused', async (t) => {
  const proxy = (await proxies({ command: undefined })).plain;
  const deepPath = Array.from({ length: 5000 }, () => 'inner').join('.');
  t.match(await proxy.send('GET', `/v1/all/x?${deepPath}=1`), { status: 200 }, 'it passes as it is');
  t.match(await proxy.send('POST', '/v1/chat', `[${'['.repeat(100_000)}`), { status: 400 });
  const opened = '{"inner":'.repeat(100_000);
  t.match(await proxy.send('POST', '/v1/all', opened), { status: 400, body: /^Message too deep/ });
  let nested = '';
  for (let depth = 0; depth < 60; depth++) nested = `12${Buffer.from([nested.length / 2]).toString('hex')}${nested}`;
  t.match(
    await proxy.send('GET', '/v1/all/x', '', { 'x-reply': frames(`8a01${(nested.length / 2).toString(16)}${nested}`) }),
    {
      status: 200,
    },
  );
  t.match(await proxy.send('GET', `/v1/deep/${'/'.repeat(30_000)}x`), { status: 200 });
  // A pattern with several readings of them would take minutes for each.
  const digits = '1'.repeat(500_000);
  for (const value of [`${digits}-`, `"${digits}x"`, `"1e${digits}"`, `"x${'\t'.repeat(500_000)}x"`])
    t.match(await proxy.send('POST', '/v1/all', `{"dbl":${value}}`), { status: 400 }, value.slice(0, 3));
});
