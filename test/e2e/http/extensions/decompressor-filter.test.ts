// envoy.filters.http.decompressor. The results of the first tests are Envoy's. Bodies that are not valid, or bombs, are where Baton differs:
// Envoy passes on what it could decompress, as if it were complete.

import { randomBytes } from 'node:crypto';
import { brotliCompressSync, constants, deflateSync, gzipSync } from 'node:zlib';
import t from 'tap';
import { besideEnvoy } from '../../harness/envoy.js';
import { connectRaw, waitFor } from '../../harness/index.js';
import { request2 } from '../h2/http2-client.js';
import { dechunk, parseMessage } from '../message.js';
import { decompressor, startCompression, stillStat, TEXT } from './compression-peers.js';

const gzip = gzipSync(TEXT);

besideEnvoy('a request is decompressed for its host', async (t, program) => {
  const { proxy, requests } = await startCompression(t, program, {
    main: [decompressor('gzip')],
    brotli: [decompressor('brotli')],
    off: [
      decompressor('gzip', {
        request_direction_config: {
          common_config: { enabled: { default_value: false, runtime_key: 'decompress' } },
          advertise_accept_encoding: false,
        },
      }),
    ],
    bold: [decompressor('gzip', { request_direction_config: { common_config: { ignore_no_transform_header: true } } })],
  });
  const post = async (listener: string, body: Buffer, headers: Record<string, string>) => {
    await proxy.on(listener, '/', { method: 'POST', body, headers });
    return requests.at(-1)!;
  };
  for (const encoding of ['gzip', 'GZIP']) {
    const { body, headers } = await post('main', gzip, { 'content-encoding': encoding });
    t.equal(body.toString(), TEXT);
    t.match(headers, { 'content-encoding': undefined, 'content-length': undefined, 'accept-encoding': 'gzip' });
  }
  const twice = await post('main', gzip, { 'content-encoding': 'gzip, br' });
  t.match({ ...twice, body: twice.body.toString() }, { headers: { 'content-encoding': 'br' }, body: TEXT });
  for (const encoding of ['br, gzip', 'x-gzip', 'identity']) {
    const { body, headers } = await post('main', gzip, { 'content-encoding': encoding });
    t.ok(body.equals(gzip));
    t.match(headers, { 'content-encoding': encoding, 'content-length': String(gzip.length) });
  }
  const noTransform = { 'content-encoding': 'gzip', 'cache-control': 'NO-TRANSFORM' };
  t.ok((await post('main', gzip, noTransform)).body.equals(gzip));
  t.equal((await post('bold', gzip, noTransform)).body.toString(), TEXT);
  t.equal((await post('brotli', brotliCompressSync(TEXT), { 'content-encoding': 'br' })).body.toString(), TEXT);
  const off = await post('off', gzip, { 'content-encoding': 'gzip' });
  t.match(off.headers, { 'content-encoding': 'gzip', 'accept-encoding': undefined });
  const stats = await proxy.baton.stats('http.main.decompressor.gzip.gzip.request.');
  t.match(stats, {
    decompressed: 3,
    not_decompressed: 4,
    total_compressed_bytes: 3 * gzip.length,
    total_uncompressed_bytes: 3 * TEXT.length,
  });
});

besideEnvoy('hosts are asked for the coding', async (t, program) => {
  const { proxy, requests } = await startCompression(t, program, {
    main: [decompressor('gzip')],
    both: [decompressor('gzip'), decompressor('brotli')],
  });
  const asked = async (listener: string, encoding?: string) => {
    await proxy.on(listener, '/', { headers: encoding === undefined ? {} : { 'accept-encoding': encoding } });
    return requests.at(-1)!.headers['accept-encoding'];
  };
  t.equal(await asked('main'), 'gzip');
  t.equal(await asked('both'), 'gzip,br');
  t.equal(await asked('main', 'br'), 'br,gzip');
  t.equal(await asked('main', 'gzip;q=0.5, br'), 'br,gzip');
  t.equal(await asked('main', 'GZIP, br'), 'GZIP,br,gzip');
  t.equal(await asked('main', 'identity;q=1, *;q=0'), 'identity;q=1,*;q=0,gzip');
});

besideEnvoy('a response is decompressed, and trailers have its lengths', async (t, program) => {
  const setup = await startCompression(t, program, { main: [decompressor('gzip')] });
  const { proxy } = setup;
  setup.answer = { headers: { 'content-encoding': 'gzip', etag: '"a"' }, parts: [gzip] };
  const plain = await proxy.get('/');
  t.match(plain, {
    status: 200,
    headers: {
      'content-encoding': undefined,
      'content-length': undefined,
      'transfer-encoding': 'chunked',
      etag: '"a"',
    },
    body: TEXT,
  });
  const http2 = await request2(t, proxy.port, '/');
  t.match(http2, {
    body: TEXT,
    trailers: {
      'x-envoy-decompressor-gzip-compressed-bytes': String(gzip.length),
      'x-envoy-decompressor-gzip-uncompressed-bytes': String(TEXT.length),
    },
  });
  setup.answer.parts = [gzip.subarray(0, 12), gzip.subarray(12)];
  t.equal((await proxy.get('/')).body, TEXT, 'in pieces');
  const head = await proxy.get('/', { method: 'HEAD' });
  t.match(head.headers, { 'content-encoding': 'gzip' });
  setup.answer = { headers: { 'content-encoding': 'gzip' }, parts: [gzipSync('')] };
  t.equal((await proxy.get('/')).body, '');
  setup.answer = { headers: { 'content-encoding': 'deflate' }, parts: [deflateSync(TEXT)] };
  t.match((await proxy.get('/')).headers, { 'content-encoding': 'deflate' });
});

besideEnvoy('padding after the compressed data is dropped, whenever it arrives', async (t, program) => {
  const { proxy, requests } = await startCompression(t, program, { main: [decompressor('gzip')] });
  const chunk = (bytes: Buffer) =>
    Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]);
  const padding = Buffer.alloc(8);
  const client = await connectRaw(t, proxy.port);
  client.write(
    'POST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n',
  );
  client.write(chunk(Buffer.concat([gzip, padding])));
  await proxy.baton.waitForStats({
    'http.main.decompressor.gzip.gzip.request.total_uncompressed_bytes': TEXT.length,
  });
  client.write(Buffer.concat([chunk(padding), chunk(padding), Buffer.from('0\r\n\r\n')]));
  t.match((await client.readToEnd()).text, /^HTTP\/1.1 200 /);
  t.equal(requests[0]!.body.toString(), TEXT);
});

const bomb = gzipSync(Buffer.alloc(50 << 20));

t.test('a request that is not valid, or a bomb, is refused', async (t) => {
  const { proxy } = await startCompression(
    t,
    { command: undefined },
    {
      gzip: [decompressor('gzip')],
      lenient: [decompressor('gzip', {}, { max_inflate_ratio: 1032 })],
      brotli: [decompressor('brotli')],
    },
  );
  const post = (listener: string, body: Buffer, encoding: string) =>
    proxy.on(listener, '/', { method: 'POST', body, headers: { 'content-encoding': encoding } });
  const refused = { status: 400, body: /^the body is not valid/ };
  t.match(await post('gzip', Buffer.from('not compressed'), 'gzip'), refused);
  t.match(await post('gzip', gzip.subarray(0, 20), 'gzip'), refused, 'cut');
  t.match(await post('gzip', bomb, 'gzip'), refused, 'a bomb');
  t.match(await post('brotli', Buffer.from('not compressed'), 'br'), refused);
  t.match(await post('brotli', brotliCompressSync(Buffer.alloc(50 << 20)), 'br'), refused);
  t.match(await post('lenient', gzipSync(Buffer.alloc(200_000)), 'gzip'), { status: 200 });
  t.match(await post('gzip', Buffer.concat([gzip, gzip]), 'gzip'), { status: 200 }, 'several members');
  t.match(await proxy.baton.stats('http.'), {
    'gzip.decompressor.gzip.gzip.decompressor_library.zlib_data_error': 3,
    'brotli.decompressor.brotli.brotli.decompressor_library.brotli_error': 2,
  });
});

t.test('a response that is not valid, or a bomb, is cut off', async (t) => {
  const setup = await startCompression(t, { command: undefined }, { main: [decompressor('gzip')] });
  for (const body of [Buffer.from('not compressed'), gzip.subarray(0, 20), bomb]) {
    setup.answer = { headers: { 'content-encoding': 'gzip' }, parts: [body] };
    const answer = await setup.proxy.get('/').then(
      ({ status }) => status,
      () => 'cut off',
    );
    t.ok(answer === 'cut off' || answer === 502, String(answer));
  }
  setup.answer = {};
  t.match(await setup.proxy.get('/'), { status: 200, body: TEXT });
});

t.test('the memory of decompression is bounded', async (t) => {
  const { proxy } = await startCompression(
    t,
    { command: undefined },
    { br: [decompressor('brotli')], gzip: [decompressor('gzip')] },
    [],
    ['-l', 'warning', '--worker-buffer-memory-mb', '16'],
  );
  const { baton } = proxy;
  const outside = () => baton.stat('server.worker_0.buffer_memory_outside');
  // Its first byte announces a window of 4 MiB; half of 16 MB may be used.
  const body = brotliCompressSync(randomBytes(60_000), { params: { [constants.BROTLI_PARAM_LGWIN]: 22 } });
  const begin = async (length: number) => {
    const client = await connectRaw(t, proxy.port);
    client.write(
      `POST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-encoding: br\r\ncontent-length: ${body.length}\r\n\r\n`,
    );
    client.write(body.subarray(0, length));
    return client;
  };
  for (let clients = 1; clients <= 2; clients++) {
    await begin(8);
    const isCounted = async () => ((await outside()) ?? 0) >> 16 === 2 * clients;
    await waitFor(isCounted, { what: 'memory that a few bytes can fill' });
  }
  const client = await begin(50_000);
  await waitFor(async () => ((await outside()) ?? 0) > 4 << 20, { what: 'the memory to be counted' });
  const post = (listener: string, bytes: Buffer) =>
    proxy.on(listener, '/', { method: 'POST', body: bytes, headers: { 'content-encoding': listener } });
  t.match(await post('br', body), { status: 503, body: 'no memory for decompression' });
  const small = brotliCompressSync(TEXT, { params: { [constants.BROTLI_PARAM_LGWIN]: 16 } });
  t.match(await post('br', small), { status: 200 }, 'a small window');
  t.match(await post('gzip', gzip), { status: 200 }, 'a small window');
  client.write(body.subarray(50_000));
  t.match((await client.readToEnd()).text, /^HTTP\/1.1 200 /);
  t.match(await post('br', body), { status: 200 });
  await waitFor(async () => (await outside()) === 4 << 16, { what: 'the memory to be released' });
  t.equal(await baton.stat('server.worker_0.buffer_memory_refusals'), 1);
});

t.test('mutated bodies do no harm', async (t) => {
  const { proxy, requests } = await startCompression(
    t,
    { command: undefined },
    {
      gzip: [decompressor('gzip')],
      br: [decompressor('brotli')],
    },
  );
  for (const [listener, whole] of [
    ['gzip', gzipSync(randomBytes(3000))],
    ['br', brotliCompressSync(randomBytes(3000))],
  ] as const) {
    for (let round = 0; round < 150; round++) {
      const body = Buffer.from(whole);
      for (let changes = 1 + (round % 4); changes > 0; changes--)
        body[Math.floor(Math.random() * body.length)]! ^= 1 << (round % 8);
      const answer = await proxy.on(listener, '/', { method: 'POST', body, headers: { 'content-encoding': listener } });
      t.ok(answer.status === 200 || answer.status === 400, `${answer.status} for ${body.toString('base64')}`);
    }
  }
  await proxy.on('gzip', '/last', { method: 'POST', body: gzip, headers: { 'content-encoding': 'gzip' } });
  t.equal(requests.at(-1)!.body.toString(), TEXT);
});

t.test('a client that reads slowly gets a long response whole', async (t) => {
  const setup = await startCompression(
    t,
    { command: undefined },
    {
      main: [decompressor('gzip', {}, { max_inflate_ratio: 1032 })],
    },
  );
  const plain = Buffer.alloc(64 << 20, 'text ');
  setup.answer = { headers: { 'content-encoding': 'gzip' }, parts: [gzipSync(plain)] };
  const client = await connectRaw(t, setup.proxy.port);
  client.socket.pause();
  client.write('GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n');
  const sent = await stillStat(setup.proxy, 'http.main.downstream_cx_tx_bytes_total');
  t.ok(sent < plain.length / 2, `${sent} bytes have been sent before the client reads`);
  client.socket.resume();
  const { text } = await client.readToEnd();
  t.ok(dechunk(parseMessage(text).rest).body === plain.toString('latin1'));
});
