// Clients use HTTP/2 on cleartext connections, in front of hosts with HTTP/1.1.

import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { constants } from 'node:http2';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import t from 'tap';
import { opening, request, reset } from '../../harness/http2-frames.js';
import {
  connectRaw,
  type EchoedRequest,
  fileAccessLog,
  httpRequest,
  startUpstream,
  staticCluster,
  tempDir,
  waitFor,
} from '../../harness/index.js';
import { answering, managerOf, routeTo, startProxy } from '../proxy.js';
import { curl, exchange, openSession, request2 } from './http2-client.js';

const MB = 1 << 20;
const hanging = new Set<string>();
const upstream = await startUpstream(t, (incoming, outgoing) => {
  const { url = '' } = incoming;
  if (url.startsWith('/hang')) {
    hanging.add(url);
    incoming.on('close', () => hanging.delete(url));
    return;
  }
  if (url === '/cut') {
    outgoing.writeHead(200, { 'content-length': '10' });
    outgoing.write('half');
    setImmediate(() => incoming.socket.destroy());
    return;
  }
  if (url === '/trailers') {
    outgoing.writeHead(200, { trailer: 'x-sum' });
    outgoing.write('body');
    outgoing.addTrailers({ 'x-sum': '1' });
    outgoing.end();
    return;
  }
  if (url.startsWith('/large')) {
    outgoing.writeHead(200, { 'content-length': String(64 * MB) });
    const piece = Buffer.alloc(MB, 'x');
    pipeline(Readable.from(Array.from({ length: 64 }, () => piece)), outgoing).catch(() => {});
    return;
  }
  const hash = createHash('sha256');
  const chunks: Buffer[] = [];
  let bytes = 0;
  incoming.on('data', (chunk: Buffer) => {
    hash.update(chunk);
    bytes += chunk.length;
    if (bytes < 10_000) chunks.push(chunk);
  });
  incoming.on('error', () => {});
  incoming.on('end', () => {
    const { method, headers, rawHeaders, trailers } = incoming;
    const body = url === '/hash' ? hash.digest('hex') : Buffer.concat(chunks).toString('latin1');
    outgoing.setHeader('X-Mixed-Case', '1');
    outgoing.end(JSON.stringify({ method, url, headers, rawHeaders, trailers, body }));
  });
});

const logFile = join(tempDir(t), 'access.log');
const proxy = await startProxy(t, {
  args: ['-l', 'warning', '--file-flush-interval-msec', '20'],
  listeners: {
    auto: managerOf(
      [
        answering({ path: '/direct' }, 'direct'),
        routeTo({ path: '/hang/short' }, 'host', { timeout: '0.2s' }),
        routeTo({ path: '/closed' }, 'closed'),
        routeTo({ prefix: '/' }, 'host', { timeout: '0s' }),
      ],
      {
        http_protocol_options: { enable_trailers: true },
        access_log: [
          fileAccessLog(
            logFile,
            '%PROTOCOL% %REQ(:METHOD)% %REQ(:PATH)% %RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% %BYTES_RECEIVED% %BYTES_SENT%\n',
          ),
        ],
      },
    ),
    only2: managerOf([answering({ path: '/' }, 'two')], {
      codec_type: 'HTTP2',
      http2_protocol_options: { max_concurrent_streams: 3 },
    }),
    only1: managerOf([answering({ path: '/' }, 'one')], { codec_type: 'HTTP1' }),
  },
  clusters: [
    {
      ...staticCluster('host', upstream.port),
      typed_extension_protocol_options: {
        'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
          '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
          explicit_http_config: { http_protocol_options: { enable_trailers: true } },
        },
      },
    },
    staticCluster('closed', 1),
  ],
});

const echo = (body: string) => JSON.parse(body) as EchoedRequest & { trailers: Record<string, string> };

t.test('a request reaches the host as HTTP/1.1, and its response comes back', async (t) => {
  const { status, headers, body } = await request2(t, proxy.port, '/some/path?q', {
    headers: { ':method': 'PUT', 'x-custom': 'value', cookie: 'a=b; c=d' },
    body: 'hello',
  });
  t.equal(status, 200);
  t.equal(headers['x-mixed-case'], '1', 'names are in lower case');
  t.notOk('connection' in headers || 'transfer-encoding' in headers || 'keep-alive' in headers);
  const seen = echo(body);
  t.match(seen, { method: 'PUT', url: '/some/path?q', body: 'hello' });
  t.match(seen.headers, {
    host: `127.0.0.1:${proxy.port}`,
    'x-custom': 'value',
    cookie: 'a=b; c=d',
    'transfer-encoding': 'chunked',
    'x-forwarded-proto': 'http',
  });
  t.notOk(Object.keys(seen.headers).some((name) => name.startsWith(':')));
});

t.test('curl is served with prior knowledge', async (t) => {
  const url = `http://127.0.0.1:${proxy.port}`;
  t.match(await curl('--http2-prior-knowledge', '-i', `${url}/direct`), /^HTTP\/2 200 \r\n[\s\S]*\r\n\r\ndirect$/);
  t.match(await curl('--http1.1', '-i', `${url}/direct`), /^HTTP\/1.1 200 OK\r\n/);
  t.match(echo(await curl('--http2-prior-knowledge', '-d', 'x'.repeat(5000), `${url}/echo`)).body, /^x{5000}$/);
  // An upgrade to h2c is not accepted, as in Envoy, and does not reach the host.
  const upgrade = echo(await curl('--http2', `${url}/echo`));
  t.notOk('upgrade' in upgrade.headers);
});

t.test('codec_type selects the protocols', async (t) => {
  t.equal((await request2(t, proxy.ports['only2']!, '/')).body, 'two');
  t.match(await curl('--http1.1', '-i', `http://127.0.0.1:${proxy.ports['only2']}/`), /curl: \(\d+\)/);
  t.equal((await httpRequest(proxy.ports['only1']!, '/')).body, 'one');
  t.match(await curl('--http2-prior-knowledge', `http://127.0.0.1:${proxy.ports['only1']}/`), /curl: \(\d+\)/);
});

t.test('the protocol is found however the preface is split', async (t) => {
  const client = await connectRaw(t, proxy.port);
  for (const byte of opening()) {
    client.write(Buffer.from([byte]));
    await new Promise(setImmediate);
  }
  client.write(request(1, '/direct'));
  await waitFor(() => client.received.includes('direct'), { what: 'the response' });
  const other = await connectRaw(t, proxy.port);
  other.write('PRI');
  await new Promise(setImmediate);
  other.write('NT /direct HTTP/1.1\r\nhost: a\r\n\r\n');
  await waitFor(() => other.received.startsWith('HTTP/1.1 400'), { what: 'an answer by HTTP/1.1' });
});

t.test('many requests at once on one connection', async (t) => {
  const session = openSession(t, proxy.port);
  const paths = Array.from({ length: 300 }, (_, index) => `/many/${index}`);
  const answers = await Promise.all(paths.map((path) => exchange(session, path, { body: path })));
  t.same(
    answers.map(({ body }) => echo(body)).map(({ url, body }) => [url, body]),
    paths.map((path) => [path, path]),
  );
  const limited = openSession(t, proxy.ports['only2']!);
  await exchange(limited, '/');
  t.equal(limited.remoteSettings.maxConcurrentStreams, 3);
});

t.test('large bodies in both directions, and a client that reads slowly', async (t) => {
  const session = openSession(t, proxy.port);
  const body = randomBytes(20 * MB);
  const uploaded = exchange(session, '/hash', { headers: { ':method': 'POST' }, body });
  const slow = session.request({ ':path': '/large/slow' });
  let slowBytes = 0;
  slow.on('data', (chunk: Buffer) => {
    slowBytes += chunk.length;
  });
  slow.pause();
  const fast = session.request({ ':path': '/large/fast' });
  let fastBytes = 0;
  fast.on('data', (chunk: Buffer) => {
    fastBytes += chunk.length;
  });
  await new Promise((resolve) => fast.on('end', resolve));
  t.equal(fastBytes, 64 * MB, 'the stream that is not read does not stop the other one');
  t.equal(echo((await uploaded).body).body, createHash('sha256').update(body).digest('hex'));
  slow.resume();
  await new Promise((resolve) => slow.on('end', resolve));
  t.equal(slowBytes, 64 * MB);
});

t.test('trailers in both directions', async (t) => {
  const answer = await request2(t, proxy.port, '/trailers');
  t.match(answer, { body: 'body', trailers: { 'x-sum': '1' } });
  const sent = await request2(t, proxy.port, '/echo', { body: 'abc', trailers: { 'x-last': 'yes' } });
  t.match(echo(sent.body), { body: 'abc', trailers: { 'x-last': 'yes' } });
});

t.test('a host that is slow, closed, or breaks off costs only its own stream', async (t) => {
  const session = openSession(t, proxy.port);
  const [late, closed, cut, direct] = await Promise.all([
    exchange(session, '/hang/short'),
    exchange(session, '/closed'),
    exchange(session, '/cut'),
    exchange(session, '/direct'),
  ]);
  t.equal(late.status, 504);
  t.equal(closed.status, 503);
  t.equal(cut.status, 200);
  t.not(cut.resetCode, constants.NGHTTP2_NO_ERROR, 'an incomplete response is reset');
  t.equal(direct.body, 'direct');
  t.notOk(session.closed);
});

t.test('a client that resets a stream, or leaves, ends its requests at the host', async (t) => {
  const session = openSession(t, proxy.port);
  const stream = session.request({ ':path': '/hang/reset' });
  stream.on('error', () => {});
  session.request({ ':path': '/hang/left' }).on('error', () => {});
  await waitFor(() => hanging.has('/hang/reset') && hanging.has('/hang/left'), { what: 'both requests' });
  stream.close(constants.NGHTTP2_CANCEL);
  await waitFor(() => !hanging.has('/hang/reset'), { what: 'the reset' });
  t.ok(hanging.has('/hang/left'));
  session.destroy();
  await waitFor(() => !hanging.has('/hang/left'), { what: 'the end' });
});

t.test('access logs and stats', async (t) => {
  const lines = () => readFileSync(logFile, 'utf8').split('\n');
  await waitFor(() => lines().some((line) => line.includes('/hang/left')), { what: 'the last line' });
  const log = lines();
  for (const line of [
    'HTTP/2 GET /direct 200 - direct_response 0 6',
    'HTTP/2 GET /hang/short 504 UT response_timeout 0 24',
    'HTTP/2 GET /hang/reset 0 DR http2.remote_reset 0 0',
    'HTTP/2 GET /hang/left 0 DC downstream_remote_disconnect 0 0',
  ]) {
    t.ok(log.includes(line), line);
  }
  t.ok(log.includes('HTTP/1.1 GET /direct 200 - direct_response 0 6'));
  const stats = await proxy.baton.stats();
  t.ok(stats['http.auto.downstream_cx_http2_total']! > 5);
  t.ok(stats['http.auto.downstream_rq_http2_total']! > 300);
  t.equal(stats['http.auto.downstream_rq_active'], 0);
  t.equal(stats['http2.rx_reset'], 1);
  t.equal(stats['http2.streams_active'], 0);
  t.equal(stats['http2.trailers'], 1);
});

t.test('a client that opens and resets requests all the time is cut off', async (t) => {
  const client = await connectRaw(t, proxy.port);
  client.write(opening());
  for (let stream = 1; stream < 2000 && client.closed === 'open'; stream += 2) {
    client.write(Buffer.concat([request(stream, '/hang/rapid'), reset(stream)]));
    await new Promise(setImmediate);
  }
  await waitFor(() => client.closed !== 'open', { what: 'the end' });
  const stats = await proxy.baton.stats();
  t.equal(stats['http.auto.downstream_rq_too_many_premature_resets'], 1);
  await waitFor(() => hanging.size === 0, { what: 'no request left at the host' });
});
