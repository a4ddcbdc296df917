// Operators that read metadata, filter state, queries, hosts and bytes: their values in text and in JSON, as Envoy 1.40 writes them.

import t from 'tap';
import { compileFormat } from '../../../src/access-log/formats/format.js';
import { compileJsonFormat } from '../../../src/access-log/formats/json-format.js';
import { LogBuffer } from '../../../src/access-log/log-buffer.js';
import type { StreamInfo } from '../../../src/access-log/stream/stream-info.js';
import type { Json } from '../../../src/config/generated/api.js';
import { fields, request, response, stream, tcpStream } from '../stream.js';

function text(operator: string, info: StreamInfo): string {
  return Buffer.from(compileFormat(`%${operator}%`).text(info), 'latin1').toString();
}

function json(operator: string, info: StreamInfo): Json {
  const out = new LogBuffer(16);
  compileJsonFormat({ value: `%${operator}%` }).write(info, out);
  return (JSON.parse(Buffer.from(out.latin1(), 'latin1').toString()) as { value: Json }).value;
}

const METADATA = {
  filter_metadata: {
    r: { s: 'hello', n: 42, b: true, z: null, f: 1.5, l: [1, 'a', { k: null }], o: { i: 'in', j: [] }, u: 'ü\n"' },
  },
};

/** A stream with a value for everything. */
function full(): StreamInfo {
  const info = stream({
    route: { metadata: METADATA, virtualHostMetadata: { filter_metadata: { v: { s: 'host' } } } },
    chain: {
      filterChainName: 'chain-a',
      metadata: { filter_metadata: { c: { s: 'chain' } } },
      listenerMetadata: { filter_metadata: { l: { s: 'listener' } } },
    },
    upstreamCluster: { name: 'c', observabilityName: 'c', metadata: { filter_metadata: { c: { s: 'cluster' } } } },
    host: {
      address: '10.0.2.1:80',
      hostname: 'a.example:80',
      metadata: { filter_metadata: { h: { s: 'endpoint' } } },
    },
    earlierHosts: [{ address: '[::1]:81', hostname: '', metadata: undefined }],
    earlierConnectionIds: [0],
    upstreamConnectionId: 7,
    accessLogType: 'DownstreamEnd',
  });
  info.ownDynamicMetadata().merge('d', { s: 'dyn', t: { u: 7 } });
  info.ownFilterState().set('a', { text: 'one "two"', isReadOnly: false, sharing: 'NONE' });
  info.ownFilterState().set('shared', { text: 'both', isReadOnly: false, sharing: 'ONCE' });
  return info;
}

t.test('each operator writes its value as text and as JSON', async (t) => {
  const info = full();
  const cases: [operator: string, text: string, json: Json][] = [
    ['METADATA(ROUTE:r:s)', 'hello', 'hello'],
    ['METADATA(ROUTE:r:s):2', 'he', 'he'],
    ['METADATA(ROUTE:r:n)', '42', 42],
    ['METADATA(ROUTE:r:n):1', '4', 42],
    ['METADATA(ROUTE:r:b)', 'true', true],
    ['METADATA(ROUTE:r:f)', '1.5', 1.5],
    ['METADATA(ROUTE:r:z)', '-', null],
    ['METADATA(ROUTE:r:l)', '[1,"a",{"k":null}]', [1, 'a', { k: null }]],
    ['METADATA(ROUTE:r:o)', '{"i":"in","j":[]}', { i: 'in', j: [] }],
    ['METADATA(ROUTE:r:o):3', '{"i', { i: 'in', j: [] }],
    ['METADATA(ROUTE:r:o:i)', 'in', 'in'],
    ['METADATA(ROUTE:r:s:x)', '-', null],
    ['METADATA(ROUTE:r:u)', 'ü\n"', 'ü\n"'],
    ['METADATA(ROUTE:none)', '-', null],
    ['METADATA(ROUTE:constructor)', '-', null],
    ['METADATA(ROUTE)', '-', null],
    ['METADATA(VIRTUAL_HOST:v:s)', 'host', 'host'],
    ['METADATA(LISTENER:l:s)', 'listener', 'listener'],
    ['METADATA(LISTENER_FILTER_CHAIN:c:s)', 'chain', 'chain'],
    ['METADATA(CLUSTER:c)', '{"s":"cluster"}', { s: 'cluster' }],
    ['METADATA(DYNAMIC:d)', '{"s":"dyn","t":{"u":7}}', { s: 'dyn', t: { u: 7 } }],
    ['DYNAMIC_METADATA(d:t:u)', '7', 7],
    ['DYNAMIC_METADATA(d:s):1', 'd', 'd'],
    ['CLUSTER_METADATA(c:s)', 'cluster', 'cluster'],
    ['UPSTREAM_METADATA(h:s)', 'endpoint', 'endpoint'],
    ['FILTER_STATE(a)', '"one \\"two\\""', 'one "two"'],
    ['FILTER_STATE(a:TYPED)', '"one \\"two\\""', 'one "two"'],
    ['FILTER_STATE(a:PLAIN)', 'one "two"', 'one "two"'],
    ['FILTER_STATE(a:PLAIN):3', 'one', 'one'],
    ['FILTER_STATE(a:FIELD:x)', '-', null],
    ['FILTER_STATE(none)', '-', null],
    ['UPSTREAM_FILTER_STATE(a:PLAIN)', '-', null],
    ['UPSTREAM_FILTER_STATE(shared:PLAIN)', 'both', 'both'],
    ['PATH', '/api/v1/locations?x=1', '/api/v1/locations?x=1'],
    ['PATH(NQ)', '/api/v1/locations', '/api/v1/locations'],
    ['PATH(:PATH):4', '/api', '/api'],
    ['PATH(WQ:ORIG)', '-', null],
    ['QUERY_PARAM(x)', '1', '1'],
    ['QUERY_PARAM(y)', '-', null],
    ['QUERY_PARAMS', 'x=1', 'x=1'],
    ['QUERY_PARAMS(DECODED):2', 'x=', 'x='],
    ['UPSTREAM_HOST_NAME', 'a.example:80', 'a.example:80'],
    ['UPSTREAM_HOST_NAME_WITHOUT_PORT', 'a.example', 'a.example'],
    ['UPSTREAM_HOSTS_ATTEMPTED', '[::1]:81,10.0.2.1:80', '[::1]:81,10.0.2.1:80'],
    ['UPSTREAM_HOSTS_ATTEMPTED_WITHOUT_PORT', '::1,10.0.2.1', '::1,10.0.2.1'],
    ['UPSTREAM_HOST_NAMES_ATTEMPTED', '[::1]:81,a.example:80', '[::1]:81,a.example:80'],
    ['UPSTREAM_HOST_NAMES_ATTEMPTED_WITHOUT_PORT', '::1,a.example', '::1,a.example'],
    ['UPSTREAM_CONNECTION_ID', '7', 7],
    ['UPSTREAM_CONNECTION_IDS_ATTEMPTED', '7', '7'],
    ['UPSTREAM_REMOTE_ADDRESS_WITHOUT_PORT(8)', '10.0.0.0/8', '10.0.0.0/8'],
    ['UPSTREAM_REMOTE_ADDRESS_WITHOUT_PORT(33)', '10.0.2.1/32', '10.0.2.1/32'],
    ['DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT(32)', '2001:db8::/32', '2001:db8::/32'],
    ['DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT(8)', '/run/baton.sock', '/run/baton.sock'],
    ['UPSTREAM_REMOTE_ADDRESS_ENDPOINT_ID', '', ''],
    ['FILTER_CHAIN_NAME', 'chain-a', 'chain-a'],
    ['ACCESS_LOG_TYPE', 'DownstreamEnd', 'DownstreamEnd'],
    ['UPSTREAM_DETECTED_CLOSE_TYPE', 'Normal', 'Normal'],
    ['CUSTOM_FLAGS', '', ''],
    ['TRACE_ID', '-', null],
    ['BYTES_RETRANSMITTED', '0', 0],
    ['COMMON_DURATION(US_TX_BEG:US_RX_BEG)', '98', 98],
    ['COMMON_DURATION(US_CX_BEG:US_CX_END)', '-', null],
    ['COMMON_DURATION(mine:yours:ns)', '-', null],
    ['COALESCE({"operators":["TRACE_ID","RESPONSE_CODE"]}):2', '20', 204],
    ['COALESCE({"operators":[{"command":"REQ","param":"x-none"},"PROTOCOL"]}):4', 'HTTP', 'HTTP'],
    ['COALESCE({"operators":[{"command":"REQ","param":"x-custom","max_length":3}]})', 'cus', 'cus'],
    ['COALESCE({"operators":["CUSTOM_FLAGS","PROTOCOL"]})', '', ''],
    ['COALESCE({"operators":["TRACE_ID"]})', '-', null],
    ['STREAM_INFO_REQ(x-custom):3', 'cus', 'cus'],
    ['REQ(x-custom):0', '', ''],
    ['REQUEST_HEADERS_BYTES', '184', 184],
    ['RESPONSE_HEADERS_BYTES', '53', 53],
    ['RESPONSE_TRAILERS_BYTES', '0', 0],
  ];
  for (const [operator, expectedText, expectedJson] of cases) {
    t.equal(text(operator, info), expectedText, operator);
    t.strictSame(json(operator, info), expectedJson, `${operator} in JSON`);
  }
});

t.test('a query is decoded without control characters, which would break the line', async (t) => {
  const info = stream({ requestHeaders: request('/x?a=%20%41%0a%25%7E+%zz%e2%82%ac%7f%22%3c&b&c=1=2&%61=9') });
  t.equal(text('QUERY_PARAM(a)', info), ' A%0a%~+%zz€%7f"<');
  t.equal(text('QUERY_PARAM(b)', info), '');
  t.equal(text('QUERY_PARAM(c)', info), '1=2');
  t.equal(text('QUERY_PARAM(A)', info), '-');
  t.equal(text('QUERY_PARAMS(DECODED):13', info), 'a=%20A%0a%~+%');
  t.equal(text('QUERY_PARAMS', stream({ requestHeaders: request('/x') })), '-');
  t.equal(text('QUERY_PARAMS', stream({ requestHeaders: request('/x?') })), '');
  t.equal(text('QUERY_PARAM(%)', stream({ requestHeaders: request('/x?%=1&%2') })), '1', 'an incomplete escape');
});

t.test('%PATH% prefers the path before a rewrite', async (t) => {
  const info = stream({ requestHeaders: request('/new?b', { 'x-envoy-original-path': '/old?a=1' }) });
  t.equal(text('PATH', info), '/old?a=1');
  t.equal(text('PATH(WQ:PATH)', info), '/new?b');
  t.equal(text('PATH(NQ:ORIG)', info), '/old');
  t.equal(text('QUERY_PARAM(a)', info), '1');
});

t.test('%GRPC_STATUS% has the status of gRPC calls only', async (t) => {
  const call = (trailers: Record<string, string>, status = 200) =>
    stream({
      requestHeaders: request('/s', { 'content-type': 'application/grpc+proto' }),
      responseHeaders: response(status),
      responseTrailers: fields(trailers),
      responseCode: status,
    });
  t.equal(text('GRPC_STATUS', call({ 'grpc-status': '7' })), 'PermissionDenied');
  t.equal(text('GRPC_STATUS(SNAKE_STRING)', call({ 'grpc-status': '7' })), 'PERMISSION_DENIED');
  t.equal(json('GRPC_STATUS_NUMBER', call({ 'grpc-status': '7' })), 7);
  t.equal(text('GRPC_STATUS', call({}, 503)), 'Unavailable', 'from the HTTP status');
  t.equal(text('GRPC_STATUS', call({ 'grpc-status': '99' })), '99', 'one that gRPC does not define');
  t.equal(text('GRPC_STATUS(NUMBER)', call({ 'grpc-status': 'x' })), '-1', 'no number');
  t.equal(text('GRPC_STATUS', stream({ responseTrailers: fields({ 'grpc-status': '7' }) })), '-');
});

t.test('%UNIQUE_ID% differs each time', async (t) => {
  const [one, other] = [text('UNIQUE_ID', tcpStream()), text('UNIQUE_ID', tcpStream())];
  t.match(one, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  t.not(one, other);
});

t.test('%EMIT_TIME% is the time of the line', async (t) => {
  const before = Date.now();
  const time = Date.parse(text('EMIT_TIME', stream()));
  t.ok(time >= before && time <= Date.now());
  t.equal(text('EMIT_TIME(%Y)', stream()), String(new Date().getUTCFullYear()));
});

t.test('invalid parameters are refused', async (t) => {
  const cases: [operator: string, message: RegExp][] = [
    ['METADATA(NOPE:a)', /takes DYNAMIC, CLUSTER, ROUTE, UPSTREAM_HOST, LISTENER, .* not 'NOPE'/],
    ['METADATA', /needs a parameter/],
    ['UPSTREAM_METADATA(a:b):2', /takes no length/],
    ['FILTER_STATE(:PLAIN)', /needs a key/],
    ['FILTER_STATE(a:JSON)', /takes PLAIN, TYPED, FIELD, not 'JSON'/],
    ['FILTER_STATE(a:FIELD)', /takes a field name with FIELD only/],
    ['FILTER_STATE(a:PLAIN:x)', /takes a field name with FIELD only/],
    ['PATH(X)', /takes WQ or NQ, not 'X'/],
    ['PATH(WQ:X)', /takes ORIG, PATH or ORIG_OR_PATH, not 'X'/],
    ['QUERY_PARAM()', /needs a parameter/],
    ['QUERY_PARAMS(X)', /takes ORIG or DECODED, not 'X'/],
    ['GRPC_STATUS(X)', /takes CAMEL_STRING, SNAKE_STRING or NUMBER, not 'X'/],
    ['GRPC_STATUS_NUMBER(NUMBER)', /takes no parameter/],
    ['UNIQUE_ID:3', /takes no length/],
    ['UPSTREAM_LOCAL_ADDRESS_WITHOUT_PORT(a)', /takes a number of bits/],
    ['UPSTREAM_LOCAL_ADDRESS_WITHOUT_PORT(129)', /takes a number of bits/],
    ['COALESCE({"operators":[]})', /needs at least one/],
    ['COALESCE({})', /takes JSON with a list 'operators'/],
    ['COALESCE(null)', /takes JSON with a list 'operators'/],
    ['COALESCE(x)', /takes JSON, not 'x'/],
    ['COALESCE({"operators":[1]})', /operators\[0\] is neither a name nor an object/],
    ['COALESCE({"operators":[{"param":"a"}]})', /operators\[0\] has no 'command'/],
    ['COALESCE({"operators":[{"command":"REQ","param":1}]})', /'param' that is not text/],
    ['COALESCE({"operators":[{"command":"REQ","param":"a","max_length":0}]})', /'max_length' that is not a positive/],
    ['COALESCE({"operators":["NOPE"]})', /unknown operator %NOPE%/],
    ['COALESCE({"operators":["REQ"]})', /%REQ% needs a parameter/],
    ['COALESCE({"operators":[{"command":"COALESCE","param":"{}"}]})', /is %COALESCE% again/],
    ['CEL(request.path ==)', /operator %CEL%: not an expression: Unexpected token: EOF \(at character 16\)/],
    ['TYPED_CEL(nope())', /there is no function nope\(\)/],
  ];
  for (const [operator, message] of cases) t.throws(() => compileFormat(`%${operator}%`), { message }, operator);
});
