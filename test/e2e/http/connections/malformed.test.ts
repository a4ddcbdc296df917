// Ambiguous, invalid and oversized requests are refused, and nothing after them on the connection is read.

import { createHash } from 'node:crypto';
import t from 'tap';
import { rawExchange, staticCluster } from '../../harness/index.js';
import { parseMessage } from '../message.js';
import { managerOf, routeTo, startProxy } from '../proxy.js';
import { response, startRawUpstream } from '../raw-upstream.js';

let rewritten = 0;
// Fails every other request with a rewritten path, so that it is retried.
const upstream = await startRawUpstream(t, ({ path, socket }) => {
  const status = path.startsWith('/new/') && rewritten++ % 2 === 0 ? 503 : 200;
  socket.write(response(status, 'reached'));
});
const routes = [routeTo({ prefix: '/' }, 'raw')];
const proxy = await startProxy(t, {
  listeners: {
    main: managerOf(routes),
    small: managerOf(routes, { max_request_headers_kb: 1 }),
    large: managerOf(
      [routeTo({ prefix: '/' }, 'raw', { retry_policy: { retry_on: '5xx' }, prefix_rewrite: '/new/' })],
      {
        max_request_headers_kb: 8192,
      },
    ),
    buffering: managerOf([routeTo({ prefix: '/' }, 'raw', { prefix_rewrite: '/new/' })], {
      max_request_headers_kb: 8192,
      http_filters: [
        {
          name: 'buffer',
          typed_config: {
            '@type': 'type.googleapis.com/envoy.extensions.filters.http.buffer.v3.Buffer',
            max_request_bytes: 100,
          },
        },
        {
          name: 'router',
          typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
        },
      ],
    }),
    few: managerOf(routes, { common_http_protocol_options: { max_headers_count: 10 } }),
    rejecting: managerOf(routes, {
      common_http_protocol_options: { headers_with_underscores_action: 'REJECT_REQUEST' },
    }),
    dropping: managerOf(routes, { common_http_protocol_options: { headers_with_underscores_action: 'DROP_HEADER' } }),
  },
  clusters: [staticCluster('raw', upstream.port)],
});

const GET = 'GET / HTTP/1.1\r\n';
const HOST = `${GET}host: a\r\n`;
const POST = 'POST / HTTP/1.1\r\nhost: a\r\n';
const CHUNKED = `${POST}transfer-encoding: chunked\r\n`;
/** A request that must never be parsed after a refused one. */
const NEXT = 'GET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n';

t.test('ambiguous or invalid requests are refused with 400 or 426, and the connection is closed', async (t) => {
  const bad: Record<string, string> = {
    'length and chunked': `${CHUNKED}content-length: 3\r\n\r\n0\r\n\r\n`,
    'two different lengths': `${POST}content-length: 3\r\ncontent-length: 4\r\n\r\nabcd`,
    'a list of different lengths': `${POST}content-length: 3, 4\r\n\r\nabcd`,
    'a signed length': `${POST}content-length: +3\r\n\r\nabc`,
    'a negative length': `${POST}content-length: -3\r\n\r\n`,
    'a hexadecimal length': `${POST}content-length: 0x3\r\n\r\nabc`,
    'an empty length': `${POST}content-length: \r\n\r\n`,
    'a length that overflows': `${POST}content-length: 99999999999999999999\r\n\r\n`,
    'chunked twice': `${CHUNKED}transfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
    'chunked that is not final': `${POST}transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n`,
    'an unknown coding': `${POST}transfer-encoding: xchunked\r\n\r\n`,
    'an obfuscated coding': `${POST}transfer-encoding: \x0bchunked\r\n\r\n0\r\n\r\n`,
    'a bare LF after a field': `${GET}host: a\nx: b\r\n\r\n`,
    'a bare LF after the request line': 'GET / HTTP/1.1\nhost: a\r\n\r\n',
    'a bare CR in a value': `${HOST}x: a\rb\r\n\r\n`,
    'a folded field': `${HOST}x: a\r\n b\r\n\r\n`,
    'a space before the colon': `${HOST}x : a\r\n\r\n`,
    'a space before the first field': `${GET} host: a\r\n\r\n`,
    'no colon': `${HOST}nothing\r\n\r\n`,
    'an empty name': `${HOST}: a\r\n\r\n`,
    'a name with a control byte': `${HOST}x\x01: a\r\n\r\n`,
    'a name beyond ASCII': `${HOST}\xe4: a\r\n\r\n`,
    'a NUL in a value': `${HOST}x: a\0b\r\n\r\n`,
    'no host': `${GET}\r\n`,
    'two hosts': `${HOST}host: b\r\n\r\n`,
    'an invalid host': `${GET}host: a b\r\n\r\n`,
    'HTTP/0.9': 'GET /\r\n\r\n',
    'HTTP/1.1 in lower case': 'GET / http/1.1\r\nhost: a\r\n\r\n',
    'HTTP/2.0': 'GET / HTTP/2.0\r\nhost: a\r\n\r\n',
    'HTTP/11': 'GET / HTTP/11\r\nhost: a\r\n\r\n',
    'two spaces in the request line': 'GET  / HTTP/1.1\r\nhost: a\r\n\r\n',
    'a space in the target': 'GET /a b HTTP/1.1\r\nhost: a\r\n\r\n',
    'a control byte in the target': 'GET /\x07 HTTP/1.1\r\nhost: a\r\n\r\n',
    'a target without slash': 'GET a HTTP/1.1\r\nhost: a\r\n\r\n',
    'an invalid method': 'G(T / HTTP/1.1\r\nhost: a\r\n\r\n',
    'a TLS hello': '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
    'a preface that is not that of HTTP/2': 'PRI * HTTP/3.0\r\n\r\nSM\r\n\r\n',
  };
  const seen = upstream.requests.length;
  for (const [what, bytes] of Object.entries(bad)) {
    const { text, closed } = await rawExchange(proxy.port, bytes + (bytes.startsWith('\x16') ? '' : NEXT));
    const { status, headers, rest } = parseMessage(text);
    const expected = /^HTTP\/\d\.\d$/.test(what) ? 426 : 400;
    t.match({ status, connection: headers['connection'] }, { status: expected, connection: 'close' }, what);
    t.notMatch(rest, /HTTP\/1/, `${what}: nothing after it is answered`);
    t.not(closed, 'open');
  }
  t.equal(upstream.requests.length, seen, 'no request reached a host');
});

t.test('an invalid body is refused when no response has started', async (t) => {
  const bad: Record<string, string> = {
    'a chunk size that is not a number': 'x\r\nabc\r\n0\r\n\r\n',
    'an empty chunk size': '\r\nabc\r\n0\r\n\r\n',
    'a chunk size that overflows': 'fffffffffffffffff\r\nabc',
    'a chunk that is longer than its size': '3\r\nabcd\r\n0\r\n\r\n',
    'a bare LF after a chunk size': '3\nabc\r\n0\r\n\r\n',
    'a bare CR in a chunk extension': '3;a\rb\r\nabc\r\n0\r\n\r\n',
    'a trailer with a space in its name': '3\r\nabc\r\n0\r\na b: c\r\n\r\n',
  };
  for (const [what, body] of Object.entries(bad)) {
    const { text } = await rawExchange(proxy.port, `${CHUNKED}\r\n${body}${NEXT}`);
    // The host answers as soon as it has the header section, so the client may get its response.
    const first = parseMessage(text);
    t.ok([200, 400].includes(first.status), `${what}: ${first.status}`);
    t.equal(first.headers['connection'], 'close', what);
    t.notOk(
      upstream.requests.some(({ path }) => path === '/smuggled'),
      `${what}: nothing after it is served`,
    );
  }
});

t.test('header sections beyond the limits are refused with 431', async (t) => {
  const kilobytes = (size: number) => `${HOST}x: ${'x'.repeat(size * 1024)}\r\n\r\n`;
  const fields = (count: number) => `${HOST}${'x: y\r\n'.repeat(count)}\r\n`;
  const status = async (port: number, bytes: string | string[]) => {
    const { text } = await rawExchange(port, bytes, { until: /\r\n\r\n/ });
    return parseMessage(text).status;
  };
  t.equal(await status(proxy.port, kilobytes(50)), 200);
  t.equal(await status(proxy.port, kilobytes(61)), 431);
  t.equal(await status(proxy.port, `GET /${'x'.repeat(62 * 1024)} HTTP/1.1\r\nhost: a\r\n\r\n`), 431);
  t.equal(await status(proxy.ports['small']!, kilobytes(2)), 431);
  t.equal(await status(proxy.port, fields(99)), 200);
  t.equal(await status(proxy.port, fields(100)), 431);
  t.equal(await status(proxy.ports['few']!, fields(9)), 200);
  t.equal(await status(proxy.ports['few']!, fields(10)), 431);
  const endless = await rawExchange(proxy.port, [HOST, 'x: ', 'x'.repeat(100_000)]);
  t.equal(parseMessage(endless.text).status, 431, 'an endless header section');
});

t.test('header names with underscores are forwarded, dropped, or refused', async (t) => {
  const bytes = `${HOST}x_a: 1\r\nx-a: 2\r\nconnection: close\r\n\r\n`;
  await rawExchange(proxy.port, bytes);
  t.match(upstream.requests.at(-1)!.head, /\r\nx_a: 1\r\n/);
  await rawExchange(proxy.ports['dropping']!, bytes);
  t.notMatch(upstream.requests.at(-1)!.head, /x_a/);
  t.match(upstream.requests.at(-1)!.head, /\r\nx-a: 2/);
  await proxy.baton.waitForStat('http1.dropped_headers_with_underscores', 1);
  const { text } = await rawExchange(proxy.ports['rejecting']!, bytes);
  t.equal(parseMessage(text).status, 400);
  await proxy.baton.waitForStat('http1.requests_rejected_with_underscores_in_headers', 1);
  await proxy.baton.waitForStat('http.rejecting.downstream_cx_protocol_error', 1);
});

t.test('an empty line before a request is ignored', async (t) => {
  // Old clients send one after a body.
  const bytes = `${POST}content-length: 1\r\n\r\na\r\n${HOST}connection: close\r\n\r\n`;
  const { text } = await rawExchange(proxy.port, `\r\n${bytes}`);
  const first = parseMessage(text);
  t.equal(first.status, 200);
  t.equal(parseMessage(first.rest.slice('reached'.length)).status, 200);
});

t.test('CONNECT reaches no host unless it is allowed', async (t) => {
  const { text } = await rawExchange(proxy.port, 'CONNECT a.test:443 HTTP/1.1\r\nhost: a.test:443\r\n\r\n', {
    until: /\r\n\r\n/,
  });
  t.ok([403, 404, 405].includes(parseMessage(text).status), text);
});

t.test('header sections of up to 8 MiB are served where that is allowed, and can be retried', async (t) => {
  const large = proxy.ports['large']!;
  for (const kilobytes of [65, 600, 8180]) {
    const before = upstream.requests.length;
    const value = createHash('sha256')
      .update(`${kilobytes}`)
      .digest('hex')
      .repeat(kilobytes * 16);
    const { text } = await rawExchange(
      large,
      `GET /old HTTP/1.1\r\nhost: a\r\nx: ${value}\r\nconnection: close\r\n\r\n`,
    );
    t.equal(parseMessage(text).status, 200, `${kilobytes} KiB`);
    const tries = upstream.requests.slice(before);
    t.equal(tries.length, 2);
    for (const { head, path } of tries) t.ok(path === '/new/old' && head.includes(`\r\nx: ${value}\r\n`), 'unchanged');
  }
  const path = 'a'.repeat(8000 * 1024);
  const { text } = await rawExchange(large, `GET /${path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`);
  const { status, rest } = parseMessage(text);
  t.same([status, rest], [503, 'out of memory for requests'], 'no memory for a second copy with a rewritten path');
});

t.test('a request without memory for a copy of its header section is answered when its body is complete', async (t) => {
  const path = 'a'.repeat(8000 * 1024);
  const { text } = await rawExchange(
    proxy.ports['buffering']!,
    `POST /${path} HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\nconnection: close\r\n\r\nab`,
  );
  const { status, rest } = parseMessage(text);
  t.same([status, rest], [503, 'out of memory for requests']);
});
