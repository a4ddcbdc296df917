// The tap filter: attached clients get traces of matching requests, as they are at the filter's position in the chain.

import t from 'tap';
import { connectRaw, rawExchange, waitFor } from '../../harness/index.js';
import { startProxy } from '../proxy.js';
import { attach, type TapClient, tapRequest } from './tap-client.js';
import { ANY, base64, fieldsOf, pathOf, signature, tapFilter, tapped, tappedHost } from './tapped-proxy.js';

const host = await tappedHost(t);
const recording = tapFilter({ record_headers_received_time: true, record_downstream_connection: true });
const { baton, get, on, port } = await startProxy(t, {
  listeners: {
    main: tapped([recording]),
    between: tapped([signature('before'), tapFilter({}, 'between'), signature('behind')]),
  },
  clusters: [host],
});

/** Disconnects, and waits until the next client may attach. */
async function detach(tap: TapClient): Promise<void> {
  tap.close();
  await waitFor(async () => (await baton.admin('/tap', { method: 'POST' })).body.startsWith('/tap requires'));
}

t.test('a trace holds both complete messages: headers, bodies, trailers, times and addresses', async (t) => {
  const tap = await attach(t, baton.adminPort, tapRequest(ANY, {}, { format: 'JSON_BODY_AS_STRING' }));
  t.match(tap.response, { statusCode: 200, headers: { 'content-type': 'text/plain; charset=UTF-8' } });
  const before = Date.now();
  const head = 'POST /path?q=1 HTTP/1.1\r\nHost: example.test\r\nX-Odd: sch\xc3\xb6n\r\nX-Bytes: a\xff\r\n';
  const framing = 'Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n';
  const pieces = [`${head}${framing}5\r\nhello\r\n`, '6\r\n world\r\n', '0\r\nX-End: yes\r\n\r\n'];
  t.match((await rawExchange(port, pieces)).text, /^HTTP\/1.1 200 OK/);
  const [trace] = await waitFor(() => tap.traces().length > 0 && tap.traces(), { what: 'the trace' });
  const { request, response, downstreamConnection } = trace!.httpBufferedTrace!;
  t.match(fieldsOf(request!), {
    ':authority': 'example.test',
    ':path': '/path?q=1',
    ':method': 'POST',
    ':scheme': 'http',
    'x-odd': 'schön',
  });
  t.equal(
    request!.headers.find(({ key }) => key === 'x-bytes')?.rawValue,
    Buffer.from('a\xff', 'latin1').toString('base64'),
  );
  t.equal(request!.body?.asString, 'hello world');
  t.same(request!.trailers, [{ key: 'x-end', value: 'yes' }]);
  t.equal(fieldsOf(response!)[':status'], '200');
  t.equal(response!.body?.asString, 'received: hello world');
  t.same(response!.trailers, [{ key: 'x-length', value: '11' }]);
  for (const message of [request!, response!]) {
    const time = Date.parse(message.headersReceivedTime!);
    t.ok(time >= before - 1000 && time <= Date.now() + 1000, 'the current time');
  }
  t.same(downstreamConnection?.localAddress.socketAddress, { address: '127.0.0.1', portValue: port });
  t.equal(downstreamConnection?.remoteAddress.socketAddress.address, '127.0.0.1');
  t.match(tap.text, /^\{\n "http_buffered_trace": \{\n {2}"request": \{/, 'indented, with the field names of the API');
  t.equal(await baton.stat('http.main.tap.rq_tapped'), 1);
  await detach(tap);
});

t.test('the binary format has traces of every worker, with bodies cut at the limits', async (t) => {
  const { baton, get } = await startProxy(t, {
    listeners: { main: tapped() },
    clusters: [host],
    args: ['-l', 'warning', '--concurrency', '2'],
  });
  const output = { max_buffered_rx_bytes: 4, max_buffered_tx_bytes: 12 };
  const sink = { format: 'PROTO_BINARY_LENGTH_DELIMITED' };
  const tap = await attach(t, baton.adminPort, tapRequest(ANY, output, sink));
  await Promise.all(Array.from({ length: 40 }, (_, i) => get(`/${i}`, { method: 'POST', body: 'some bytes' })));
  const traces = await waitFor(() => tap.binaryTraces().length === 40 && tap.binaryTraces(), { what: '40 traces' });
  const paths = traces.map((trace) => fieldsOf(trace.httpBufferedTrace!.request!)[':path']);
  t.same(new Set(paths), new Set(Array.from({ length: 40 }, (_, i) => `/${i}`)));
  for (const { httpBufferedTrace: trace } of traces) {
    t.same(trace?.request?.body, { asBytes: base64('some'), truncated: true });
    t.same(trace?.response?.body, { asBytes: base64('received: so'), truncated: true });
  }
  const lines = (await baton.admin('/stats?filter=worker_.*downstream_cx_total')).body;
  t.equal([...lines.matchAll(/worker_\d\.downstream_cx_total: [1-9]/g)].length, 2, 'both workers have served');
});

t.test('matching requests are traced, at whatever point the match is decided', async (t) => {
  const header = (name: string, exact: string) => ({ headers: [{ name, string_match: { exact } }] });
  const rules = [
    { http_request_headers_match: header(':path', '/head') },
    { http_request_trailers_match: header('x-end', 'yes') },
    { http_response_headers_match: header(':status', '404') },
    { http_response_generic_body_match: { patterns: [{ string_match: ': to' }, { string_match: 'find' }] } },
    { http_response_trailers_match: header('x-length', '7') },
  ];
  for (const streaming of [false, true]) {
    const output = { streaming, max_buffered_rx_bytes: 6 };
    const tap = await attach(t, baton.adminPort, tapRequest({ or_match: { rules } }, output));
    await get('/head');
    await get('/none', { method: 'POST', body: 'nothing here' });
    await get('/body', { method: 'POST', body: 'to find' });
    const head = 'POST /trailers HTTP/1.1\r\nhost: a\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n';
    await rawExchange(port, `${head}5\r\nbytes\r\n0\r\nx-end: yes\r\n\r\n`);
    await get('/response-trailers', { method: 'POST', body: '7 bytes' });
    await get('/missing');
    const paths = () => tap.traces().flatMap((trace) => pathOf(trace) ?? []);
    await waitFor(() => paths().includes('/missing'), { what: 'the last trace' });
    t.same(paths(), ['/head', '/body', '/trailers', '/response-trailers', '/missing']);
    if (streaming) {
      const segments = tap.traces().map((trace) => trace.httpStreamedTraceSegment!);
      const { traceId } = segments.find((segment) => JSON.stringify(segment).includes('/response-trailers'))!;
      const pieces = segments
        .filter((segment) => segment.traceId === traceId)
        .map((segment) => Object.keys(segment)[1]);
      const order = ['requestHeaders', 'requestBodyChunk', 'responseHeaders', 'responseBodyChunk', 'responseTrailers'];
      t.same(pieces, order, 'data from before the match is included');
    }
    await detach(tap);
  }
});

t.test('a streamed trace arrives piece by piece, while the request is in progress', async (t) => {
  const output = { streaming: true, max_buffered_rx_bytes: 3 };
  const tap = await attach(t, baton.adminPort, tapRequest(ANY, output, { format: 'JSON_BODY_AS_STRING' }));
  const before = (await baton.stat('http.main.tap.rq_tapped'))!;
  const client = await connectRaw(t, port);
  client.write('POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n');
  const segments = () => tap.traces().map((trace) => trace.httpStreamedTraceSegment!);
  await waitFor(() => segments().length === 1, { what: 'the headers' });
  client.write('3\r\none\r\n');
  await waitFor(() => segments().length === 2, { what: 'the first bytes' });
  client.write('3\r\ntwo\r\n5\r\nthree\r\n0\r\nx-end: yes\r\n\r\n');
  await client.readUntil('x-length: 11');
  const last = await waitFor(() => segments().at(-1)?.['responseTrailers'], { what: 'the response trailers' });
  t.match(last, { headers: [{ key: 'x-length', value: '11' }] });
  t.equal(new Set(segments().map(({ traceId }) => traceId)).size, 1);
  const bodies = segments().flatMap((segment) => segment['requestBodyChunk'] ?? []);
  t.same(bodies[0], { asString: 'one' });
  t.match(bodies.at(-1), { asString: 'thr', truncated: true });
  t.match(
    segments().find((segment) => segment['requestTrailers']),
    { requestTrailers: { headers: [{ key: 'x-end' }] } },
  );
  t.ok(segments().some((segment) => segment['responseHeaders']));
  t.equal(await baton.stat('http.main.tap.rq_tapped'), before + 1, 'a streamed trace counts as one request');
  await detach(tap);
});

t.test('the filter traces messages as they are at its position in the chain', async (t) => {
  const tap = await attach(t, baton.adminPort, { ...tapRequest(ANY), config_id: 'between' });
  await on('between', '/');
  const [trace] = await waitFor(() => tap.traces().length > 0 && tap.traces());
  t.equal(fieldsOf(trace!.httpBufferedTrace!.request!)['x-by'], 'before');
  t.equal(fieldsOf(trace!.httpBufferedTrace!.response!)['x-by'], 'behind');
});
