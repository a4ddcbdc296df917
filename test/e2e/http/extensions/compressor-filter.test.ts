// envoy.filters.http.compressor. The results of the first tests are Envoy's; the last ones show what Baton guarantees beyond them.

import { randomBytes } from 'node:crypto';
import { type OutgoingHttpHeaders, request } from 'node:http';
import type { Socket } from 'node:net';
import { brotliDecompressSync, constants, createGunzip, gunzipSync } from 'node:zlib';
import t from 'tap';
import { besideEnvoy } from '../../harness/envoy.js';
import { connectRaw, ROUTER_FILTER, startTcpUpstream, staticCluster, waitFor } from '../../harness/index.js';
import { request2 } from '../h2/http2-client.js';
import { managerOf, routeTo, startProxy } from '../proxy.js';
import { compressor, library, startCompression, stillStat, TEXT, TYPES } from './compression-peers.js';

const latin1 = (text: string) => Buffer.from(text, 'latin1');
const accept = (encoding: string) => ({ headers: { 'accept-encoding': encoding } });

besideEnvoy('a response is compressed in the coding that the client accepts', async (t, program) => {
  const { proxy } = await startCompression(t, program, {
    gzip: [compressor('gzip')],
    both: [compressor('brotli'), compressor('gzip')],
  });
  const gzip = await proxy.on('gzip', '/', accept('gzip'));
  t.match(gzip, {
    status: 200,
    headers: {
      'content-encoding': 'gzip',
      vary: 'Accept-Encoding',
      'content-length': undefined,
      'transfer-encoding': 'chunked',
    },
  });
  t.equal(gunzipSync(latin1(gzip.body)).toString(), TEXT);
  const brotli = await proxy.on('both', '/', accept('br, gzip'));
  t.match(brotli.headers, { 'content-encoding': 'br', vary: 'Accept-Encoding' });
  t.equal(brotliDecompressSync(latin1(brotli.body)).toString(), TEXT);
  t.match((await proxy.on('both', '/', accept('gzip'))).headers, { 'content-encoding': 'gzip' });
  for (const encoding of ['deflate', 'gzip;q=0', 'identity', 'GZIP']) {
    const { body, headers } = await proxy.on('gzip', '/', accept(encoding));
    t.match({ body, headers }, { body: TEXT, headers: { 'content-length': '120', vary: 'Accept-Encoding' } }, encoding);
    t.equal(headers['content-encoding'], undefined);
  }
  t.match(await proxy.on('gzip', '/'), { body: TEXT, headers: { vary: 'Accept-Encoding' } });
  t.match(await proxy.on('gzip', '/', accept('*')), { headers: { 'content-encoding': 'gzip' } });
  const http2 = await request2(t, proxy.ports['gzip']!, '/', accept('gzip'));
  t.match(http2.headers, { 'content-encoding': 'gzip' });
  t.equal(gunzipSync(latin1(http2.body)).toString(), TEXT, 'over HTTP/2');
  const head = await proxy.on('gzip', '/', { ...accept('gzip'), method: 'HEAD' });
  t.match(head.headers, { 'content-length': '120', 'content-encoding': undefined, vary: 'Accept-Encoding' });
  const stats = await proxy.baton.stats('http.gzip.compressor.gzip.gzip.');
  t.match(stats, {
    compressed: 3,
    not_compressed: 6,
    total_uncompressed_bytes: 360,
    header_compressor_used: 2,
    header_wildcard: 1,
    header_identity: 1,
    header_not_valid: 3,
    no_accept_header: 1,
    'request.not_compressed': 9,
  });
  t.match(await proxy.baton.stats('http.both.compressor.brotli.brotli.'), {
    header_compressor_used: 1,
    header_compressor_overshadowed: 1,
  });
});

besideEnvoy('some responses are not compressed', async (t, program) => {
  const direction = {
    disable_on_etag_header: true,
    uncompressible_response_codes: [404],
    status_header_enabled: true,
    common_config: { min_content_length: 100 },
  };
  const setup = await startCompression(t, program, {
    usual: [compressor('gzip')],
    strict: [compressor('gzip', { response_direction_config: direction })],
    weak: [compressor('gzip', { response_direction_config: { weaken_etag_on_compress: true } })],
    typed: [
      compressor('gzip', {
        response_direction_config: { common_config: { content_type_matcher: [{ prefix: 'application/' }] } },
      }),
    ],
  });
  const { proxy } = setup;
  const get = async (listener: string, headers: Record<string, string>, status = 200, parts = [TEXT]) => {
    setup.answer = { headers, status, parts };
    return (await proxy.on(listener, '/', accept('gzip'))).headers;
  };
  const plain = { 'content-encoding': undefined, 'content-length': '120' };
  for (const type of ['image/png', 'application/grpc', 'text/markdown', 'text/event-stream', 'application/a+json'])
    t.match(await get('usual', { 'content-type': type }), { ...plain, vary: undefined }, type);
  for (const type of ['TEXT/HTML', 'text/html; charset=utf-8', 'application/json', 'image/svg+xml', 'text/xml'])
    t.match(await get('usual', { 'content-type': type }), { 'content-encoding': 'gzip' }, type);
  t.match(await get('usual', { 'content-encoding': 'br' }), { 'content-encoding': 'br', vary: undefined });
  t.match(await get('usual', { 'cache-control': 'max-age=1, No-Transform' }), { ...plain, vary: undefined });
  t.match(await get('usual', {}, 200, [TEXT.slice(0, 29)]), { 'content-length': '29', vary: undefined });
  t.match(await get('usual', {}, 404), { 'content-encoding': 'gzip' });
  t.match(await get('typed', {}), plain, 'matchers replace the list');
  t.match(await get('typed', { 'content-type': 'application/x; a=b' }), { 'content-encoding': 'gzip' });

  const status = (text: string) => ({ 'x-envoy-compression-status': `gzip;${text}` });
  t.match(await get('strict', {}), { 'content-encoding': 'gzip', ...status('Compressed;OriginalLength=120') });
  t.match(await get('strict', { etag: '"a"' }), { ...plain, etag: '"a"', ...status('EtagNotAllowed') });
  t.match(await get('strict', {}, 404), { ...plain, ...status('StatusCodeNotAllowed') });
  t.match(await get('strict', { 'content-type': 'image/png' }), status('ContentTypeNotAllowed'));
  t.match(await get('strict', {}, 200, [TEXT.slice(0, 99)]), status('ContentLengthTooSmall'));

  t.match(await get('usual', { etag: '"a"' }), { etag: undefined, 'content-encoding': 'gzip' });
  t.match(await get('usual', { etag: 'W/"a"' }), { etag: 'W/"a"', 'content-encoding': 'gzip' });
  t.match(await get('weak', { etag: '"a"' }), { etag: 'W/"a"', 'content-encoding': 'gzip' });
  const varied = [
    ['Origin', 'Origin, Accept-Encoding'],
    ['accept-encoding', 'accept-encoding, Accept-Encoding'],
    ['a, Accept-Encoding', 'a, Accept-Encoding'],
    ['*', '*, Accept-Encoding'],
  ] as const;
  for (const [vary, expected] of varied) t.match(await get('usual', { vary }), { vary: expected });
  t.match(await proxy.baton.stats('http.strict.compressor.gzip.gzip.'), {
    not_compressed_etag: 1,
    header_compressor_used: 1,
    'response.compressed': 1,
    'response.not_compressed': 4,
  });
});

besideEnvoy('a route can disable the filter, or choose another library', async (t, program) => {
  const perRoute = (config: object) => ({
    typed_per_filter_config: {
      'gzip-compressor': { '@type': `${TYPES}filters.http.compressor.v3.CompressorPerRoute`, ...config },
    },
  });
  const overrides = {
    response_direction_config: { remove_accept_encoding_header: true },
    compressor_library: library('brotli', 'compressor'),
  };
  const { proxy, requests } = await startCompression(t, program, { main: [compressor('gzip')] }, [
    routeTo({ prefix: '/off' }, 'host', {}, perRoute({ disabled: true })),
    routeTo({ prefix: '/brotli' }, 'host', {}, perRoute({ overrides })),
  ]);
  t.match((await proxy.get('/off', accept('gzip'))).headers, { 'content-encoding': undefined, vary: undefined });
  t.match((await proxy.get('/brotli', accept('br'))).headers, { 'content-encoding': 'br' });
  t.match((await proxy.get('/brotli', accept('gzip'))).headers, { 'content-encoding': undefined });
  t.match((await proxy.get('/', accept('gzip'))).headers, { 'content-encoding': 'gzip' });
  t.same(
    requests.map(({ headers }) => headers['accept-encoding']),
    ['gzip', undefined, undefined, 'gzip'],
  );
});

besideEnvoy('a request is compressed for its host', async (t, program) => {
  const common = { enabled: { default_value: true, runtime_key: 'compress.requests' }, min_content_length: 10 };
  const { proxy, requests } = await startCompression(t, program, {
    main: [compressor('gzip', { request_direction_config: { common_config: common } })],
    all: [compressor('gzip', { request_direction_config: {} })],
    off: [compressor('gzip')],
  });
  const post = async (body: string, headers: OutgoingHttpHeaders, listener = 'main') => {
    await proxy.on(listener, '/', { method: 'POST', body, headers: { 'content-type': 'text/plain', ...headers } });
    return requests.at(-1)!;
  };
  for (const headers of [{}, { 'transfer-encoding': 'chunked' }, { 'cache-control': 'no-transform' }]) {
    const request = await post(TEXT, headers);
    t.match(request.headers, { 'content-encoding': 'gzip', 'content-length': undefined });
    t.equal(gunzipSync(request.body).toString(), TEXT);
  }
  for (const headers of [{ 'content-type': 'image/png' }, { 'content-encoding': 'br' }])
    t.equal((await post(TEXT, headers)).body.toString(), TEXT);
  t.equal((await post('short', {})).body.toString(), 'short');
  t.equal(gunzipSync((await post(TEXT, {}, 'all')).body).toString(), TEXT);
  t.equal((await post(TEXT, {}, 'off')).body.toString(), TEXT, 'only with request_direction_config');
  t.match(await proxy.baton.stats('http.main.compressor.gzip.gzip.request.'), {
    compressed: 3,
    not_compressed: 3,
    content_length_too_small: 1,
    total_uncompressed_bytes: 360,
  });
});

besideEnvoy('each piece of a response arrives at once', async (t, program) => {
  const sockets: Socket[] = [];
  const head = 'HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n';
  const host = await startTcpUpstream(t, (socket) => {
    socket.on('error', () => {});
    socket.once('data', () => {
      socket.write(head);
      sockets.push(socket);
    });
  });
  const filters = { http_filters: [compressor('gzip'), ROUTER_FILTER] };
  const proxy = await startProxy(t, {
    ...program,
    listeners: { main: managerOf([routeTo({ prefix: '/' }, 'host')], filters) },
    clusters: [staticCluster('host', host.port)],
  });
  const unpacked = createGunzip({ flush: constants.Z_SYNC_FLUSH });
  let text = '';
  unpacked.on('data', (part: Buffer) => {
    text += part.toString();
  });
  const client = request({ port: proxy.port, host: '127.0.0.1', headers: { 'accept-encoding': 'gzip' }, agent: false });
  client.on('error', () => {});
  client.on('response', (response) => response.pipe(unpacked));
  client.end();
  await waitFor(() => sockets.length > 0, { what: 'the request' });
  for (const piece of ['first', 'second']) {
    sockets[0]!.write(`${piece.length.toString(16)}\r\n${piece}\r\n`);
    await waitFor(() => text.endsWith(piece), { what: piece });
  }
  sockets[0]!.write('0\r\n\r\n');
  await waitFor(() => unpacked.readableEnded, { what: 'the end' });
  t.equal(text, 'firstsecond');
});

t.test('other clients are served while a large body is compressed', async (t) => {
  const setup = await startCompression(
    t,
    { command: undefined },
    {
      slow: [compressor('brotli', {}, { quality: 11, window_bits: 22 })],
    },
  );
  const { proxy } = setup;
  // Text that costs brotli seconds.
  const words = Array.from({ length: 60_000 }, () => randomBytes(4).toString('base64').slice(0, 5)).join(' ');
  setup.answer = { parts: [words] };
  let isDone = false;
  const large = proxy.get('/', { ...accept('br'), deadlineMs: 60_000 }).finally(() => {
    isDone = true;
  });
  await waitFor(() => setup.requests.length === 1, { what: 'the large request' });
  setup.answer = { parts: ['small'] };
  let served = 0;
  for (; !isDone && served < 10; served++) t.equal((await proxy.get('/')).body, 'small');
  t.notOk(isDone, 'ten requests take less time');
  t.equal(brotliDecompressSync(latin1((await large).body)).toString(), words);
});

t.test('a client that reads slowly stops the host', async (t) => {
  const setup = await startCompression(t, { command: undefined }, { gzip: [compressor('gzip')] });
  const noise = randomBytes(32 << 20);
  setup.answer = { parts: [noise] };
  const { proxy } = setup;
  const client = await connectRaw(t, proxy.port);
  client.socket.pause();
  client.write('GET / HTTP/1.1\r\nhost: a\r\naccept-encoding: gzip\r\nconnection: close\r\n\r\n');
  const last = await stillStat(proxy, 'cluster.host.upstream_cx_rx_bytes_total');
  t.ok(last < noise.length / 2, `${last} bytes of the response have been read`);
  client.socket.resume();
  const { text } = await client.readToEnd();
  t.ok(text.length > noise.length);
});

t.test('without memory for compression, a response is sent as it is', async (t) => {
  const setup = await startCompression(
    t,
    { command: undefined },
    { main: [compressor('brotli', {}, { window_bits: 22 })] },
    [],
    ['-l', 'warning', '--worker-buffer-memory-mb', '16'],
  );
  const { proxy } = setup;
  const noise = randomBytes(32 << 20);
  setup.answer = { parts: [noise, ''] };
  const client = await connectRaw(t, proxy.port);
  client.socket.pause();
  client.write('GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\naccept-encoding: br\r\n\r\n');
  await proxy.baton.waitForStats({ 'http.main.compressor.brotli.brotli.compressed': 1 });
  setup.answer = {};
  const plain = await proxy.get('/', accept('br'));
  t.match(plain, { status: 200, body: TEXT, headers: { 'content-encoding': undefined, vary: 'Accept-Encoding' } });
  client.socket.resume();
  t.match((await client.readToEnd()).text.slice(0, 1000), /content-encoding: br\r\n/);
  t.match(await proxy.get('/', accept('br')), { headers: { 'content-encoding': 'br' } });
});
