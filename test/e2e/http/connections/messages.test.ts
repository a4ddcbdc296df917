// HTTP/1.1 on the wire, on both sides: order, framing, methods and statuses without bodies, trailers, versions.

import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import t from 'tap';
import {
  connectRaw,
  fileAccessLog,
  type RawConnection,
  rawExchange,
  staticCluster,
  TRAILERS,
  TRAILERS_CLUSTER,
  tempDir,
  waitFor,
} from '../../harness/index.js';
import { dechunk, type Message, parseMessage } from '../message.js';
import { answering, managerOf, routeTo, startProxy } from '../proxy.js';
import { type RawRequest, response, startRawUpstream } from '../raw-upstream.js';

/** The methods of Envoy's HTTP/1 codec, without CONNECT. */
const METHODS =
  'ACL BIND CHECKOUT COPY DELETE GET HEAD LINK LOCK MERGE MKACTIVITY MKCALENDAR MKCOL MOVE MSEARCH NOTIFY OPTIONS PATCH ' +
  'POST PROPFIND PROPPATCH PURGE PUT REBIND REPORT SEARCH SOURCE SUBSCRIBE TRACE UNBIND UNLINK UNLOCK UNSUBSCRIBE';

const held: RawRequest[] = [];
const upstream = await startRawUpstream(t, (request) => {
  const { path, socket } = request;
  if (path.startsWith('/held')) held.push(request);
  else socket.write(answers()[path] ?? response(200, path));
});
const routes = [answering({ prefix: '/direct' }, 'direct'), routeTo({ prefix: '/' }, 'raw')];
const LOG = join(tempDir(t), 'log');
const proxy = await startProxy(t, {
  args: ['-l', 'warning', '--file-flush-interval-msec', '20'],
  listeners: {
    main: managerOf(routes, TRAILERS),
    old: managerOf(routes, { http_protocol_options: { accept_http_10: true, default_host_for_http_10: 'old.test' } }),
    custom: managerOf(routes, { http_protocol_options: { allow_custom_methods: true } }),
    logged: managerOf(routes, {
      access_log: [fileAccessLog(LOG, '%REQ(:METHOD)% %RESPONSE_CODE% %RESPONSE_CODE_DETAILS% %RESPONSE_FLAGS%\n')],
    }),
    hostless: managerOf(routes, { http_protocol_options: { accept_http_10: true } }),
    passing100: managerOf(routes, { proxy_100_continue: true }),
    few: managerOf(routes, { common_http_protocol_options: { max_requests_per_connection: 2 } }),
  },
  clusters: [staticCluster('raw', upstream.port, TRAILERS_CLUSTER)],
});

t.test('pipelined requests are answered in order', async (t) => {
  const paths = Array.from({ length: 20 }, (_, index) => (index % 3 === 1 ? '/direct' : `/${index}`));
  const bytes = paths.map((path) => `GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`).join('');
  const expected = paths.map((path) => (path === '/direct' ? 'direct' : path));
  const atOnce = await connectRaw(t, proxy.port);
  atOnce.write(bytes);
  t.same(await readBodies(atOnce, paths.length), expected, 'in one piece');
  const cut = await connectRaw(t, proxy.port);
  for (let at = 0; at < bytes.length; at += 37) cut.write(bytes.slice(at, at + 37));
  t.same(await readBodies(cut, paths.length), expected, 'in pieces');
});

t.test('transfer-encoding is forwarded in canonical form', async (t) => {
  for (const line of ['TRANSFER-ENCODING: chunked', 'transfer-encoding:\tchunked', 'Transfer-Encoding:CHUNKED \t']) {
    const head = `POST /coded HTTP/1.1\r\nhost: a\r\n${line}\r\nconnection: close\r\n\r\n`;
    const { text } = await rawExchange(proxy.port, `${head}3\r\nabc\r\n0\r\n\r\n`);
    t.equal(parseMessage(text).rest, '/coded', line);
    const coding = upstream.requests
      .at(-1)!
      .head.split('\r\n')
      .filter((each) => /^transfer-encoding/i.test(each));
    t.match(coding, [/^transfer-encoding: chunked$/i], line);
    t.notMatch(coding[0], /CHUNKED/);
  }
  const { text } = await rawExchange(proxy.port, 'GET /oddly-coded HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n');
  t.match(text, /\r\ntransfer-encoding: chunked\r\n/, 'a response');
});

t.test('a slow first response delays the later ones', async (t) => {
  const connection = await connectRaw(t, proxy.port);
  connection.write('POST /held/1 HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\nab');
  connection.write('GET /direct HTTP/1.1\r\nhost: a\r\n\r\n');
  await waitFor(() => held.length === 1);
  held.pop()!.socket.write(response(200, 'first'));
  t.same(await readBodies(connection, 2), ['first', 'direct']);
});

t.test('a connection is kept alive until either side closes it', async (t) => {
  const kept = await connectRaw(t, proxy.port);
  for (let i = 0; i < 3; i++) {
    kept.write('GET /a HTTP/1.1\r\nhost: a\r\n\r\n');
    const [message] = await readMessages(kept, 1);
    t.equal(message!.headers['connection'], undefined);
  }
  kept.write('GET /a HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n');
  const { text, closed } = await kept.readToEnd();
  t.match(parseMessage(text), { status: 200, headers: { connection: 'close' }, rest: '/a' });
  t.equal(closed, 'end');

  const few = await connectRaw(t, proxy.ports['few']!);
  few.write('GET /1 HTTP/1.1\r\nhost: a\r\n\r\nGET /2 HTTP/1.1\r\nhost: a\r\n\r\nGET /3 HTTP/1.1\r\nhost: a\r\n\r\n');
  const all = (await few.readToEnd()).text;
  const first = parseMessage(all);
  t.equal(first.headers['connection'], undefined);
  const second = parseMessage(first.rest.slice(2));
  t.match(second, { headers: { connection: 'close' }, rest: '/2' }, 'the last of max_requests_per_connection closes');
});

t.test('responses to HEAD, 204 and 304 have no body, and the next response follows at once', async (t) => {
  for (const [method, path, length] of [
    ['HEAD', '/length', '10'],
    ['HEAD', '/head-chunked', undefined],
    ['GET', '/204', undefined],
    ['GET', '/304', '10'],
  ] as const) {
    const { text } = await rawExchange(
      proxy.port,
      `${method} ${path} HTTP/1.1\r\nhost: a\r\n\r\nGET /next HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`,
    );
    const first = parseMessage(text);
    t.equal(first.headers['content-length'], length, `${method} ${path}: the host's content-length`);
    t.match(parseMessage(first.rest), { status: 200, rest: '/next' }, `${method} ${path}: the next response`);
  }
  t.equal(upstream.requests.filter(({ method }) => method === 'HEAD').length, 2, 'HEAD is forwarded as HEAD');
});

t.test('chunked bodies are forwarded in both directions', async (t) => {
  const connection = await connectRaw(t, proxy.port);
  connection.write('GET /chunked HTTP/1.1\r\nhost: a\r\n\r\n');
  const { headers } = parseMessage(await connection.readUntil('\r\n\r\n'));
  t.match(headers, { 'transfer-encoding': 'chunked' });
  const { body, isComplete } = dechunk(await connection.readUntil('0\r\n\r\n'));
  t.match({ body, isComplete }, { body: 'abcdefghij', isComplete: true });

  connection.write('POST /held/chunked HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n');
  await waitFor(() => held.length === 1);
  const { head, socket } = held.pop()!;
  t.match(parseMessage(`${head}\r\n\r\n`).headers, { 'transfer-encoding': 'chunked' });
  t.notMatch(head, /content-length/i);
  let received = '';
  socket.on('data', (chunk) => {
    received += chunk;
  });
  connection.write('3;extension=1\r\nabc\r\n');
  await waitFor(() => received.includes('abc'), { what: 'the first chunk before the last' });
  connection.write('0a\r\n0123456789\r\n');
  connection.write('0\r\n\r\n');
  await waitFor(() => received.endsWith('0\r\n\r\n'));
  t.equal(dechunk(received).body, 'abc0123456789');
  socket.write(response(200, 'done'));
  t.same(await readBodies(connection, 1), ['done']);
});

t.test('trailers are forwarded in both directions', async (t) => {
  const connection = await connectRaw(t, proxy.port);
  connection.write('GET /trailers HTTP/1.1\r\nhost: a\r\nte: trailers\r\n\r\n');
  await connection.readUntil('\r\n\r\n');
  const { body, trailers } = dechunk(await connection.readUntil(/\r\n0\r\n(.+\r\n)*\r\n/));
  t.match({ body, trailers }, { body: 'abcde', trailers: { 'x-sum': '15', 'x-more': 'yes' } });

  connection.write('POST /held/trailers HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n');
  await waitFor(() => held.length === 1);
  const { socket } = held.pop()!;
  let received = '';
  socket.on('data', (chunk) => {
    received += chunk;
  });
  connection.write('2\r\nab\r\n0\r\nx-end: 1\r\n\r\n');
  await waitFor(() => dechunk(received).isComplete);
  t.match(dechunk(received), { body: 'ab', trailers: { 'x-end': '1' } });
  socket.write(response(200, 'done'));
  t.same(await readBodies(connection, 1), ['done']);
});

t.test('a client with Expect: 100-continue gets 100 Continue', async (t) => {
  const expecting = (path: string) =>
    `POST ${path} HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\n`;
  const edge = await connectRaw(t, proxy.port);
  edge.write(expecting('/held/continue'));
  t.equal(parseMessage(await edge.readUntil('\r\n\r\n')).status, 100, 'by the proxy itself');
  edge.write('body');
  await waitFor(() => held.length === 1);
  const request = held.pop()!;
  t.notMatch(request.head, /\r\nexpect:/i, 'expect is not forwarded');
  request.socket.write(response(200, 'done'));
  t.same(await readBodies(edge, 1), ['done']);

  const passed = await connectRaw(t, proxy.ports['passing100']!);
  passed.write(expecting('/held/continue'));
  await waitFor(() => held.length === 1);
  const waiting = held.pop()!;
  t.match(waiting.head, /\r\nexpect: 100-continue/i, 'forwarded to the host when configured');
  t.equal(passed.received, '', 'before the host has answered');
  waiting.socket.write('HTTP/1.1 100 Continue\r\n\r\n');
  t.equal(parseMessage(await passed.readUntil('\r\n\r\n')).status, 100);
  passed.write('body');
  waiting.socket.write(response(200, 'done'));
  t.same(await readBodies(passed, 1), ['done']);
  for (const name of ['main', 'passing100']) {
    t.equal(await proxy.baton.stat(`http.${name}.downstream_rq_1xx`), 1, `counted as a response of '${name}'`);
  }
});

t.test('informational responses are forwarded before the final one where that is configured', async (t) => {
  const connection = await connectRaw(t, proxy.ports['passing100']!);
  connection.write('GET /held/early HTTP/1.1\r\nhost: a\r\n\r\n');
  await waitFor(() => held.length === 1);
  const { socket } = held.pop()!;
  socket.write('HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\n\r\n');
  const early = parseMessage(await connection.readUntil('\r\n\r\n'));
  t.match(early, { status: 103, headers: { link: '</a.css>; rel=preload' } });
  socket.write('HTTP/1.1 103 Early Hints\r\nlink: </b.css>; rel=preload\r\n\r\n');
  t.equal(parseMessage(await connection.readUntil('\r\n\r\n')).status, 103);
  socket.write(response(200, 'done'));
  t.same(await readBodies(connection, 1), ['done']);

  const other = await connectRaw(t, proxy.port);
  other.write('GET /held/early HTTP/1.1\r\nhost: a\r\n\r\n');
  await waitFor(() => held.length === 1);
  held.pop()!.socket.write(`HTTP/1.1 103 Early Hints\r\n\r\n${response(200, 'done')}`);
  t.equal(parseMessage(await other.readUntil('done')).status, 200, 'not forwarded by default');
});

t.test('HTTP/1.0 is refused, or served when configured', async (t) => {
  const refused = await rawExchange(proxy.port, 'GET / HTTP/1.0\r\nhost: a\r\n\r\n');
  t.match(parseMessage(refused.text), { status: 426, headers: { connection: 'close' } });
  t.equal(refused.closed, 'end');

  const port = proxy.ports['old']!;
  const closing = await rawExchange(port, 'GET /old HTTP/1.0\r\n\r\n');
  t.match(parseMessage(closing.text), { status: 200, rest: '/old' }, 'without host, and closed');
  t.match(upstream.requests.at(-1)!.head, /^GET \/old HTTP\/1\.1\r\n/, 'forwarded as HTTP/1.1');
  t.match(upstream.requests.at(-1)!.head, /\r\nhost: old\.test(\r\n|$)/i, 'with the default host');
  await rawExchange(port, 'POST /old HTTP/1.0\r\nexpect: 100-continue\r\ncontent-length: 1\r\n\r\na');
  t.notMatch(upstream.requests.at(-1)!.head, /\r\nexpect:/i, 'expect of an HTTP/1.0 client is not forwarded');
  const hostless = await rawExchange(proxy.ports['hostless']!, 'GET /old HTTP/1.0\r\n\r\n');
  t.match(parseMessage(hostless.text), { status: 400 }, 'no host at all');
  const chunked = await rawExchange(port, 'GET /chunked HTTP/1.0\r\n\r\n');
  const { headers, rest } = parseMessage(chunked.text);
  t.equal(headers['transfer-encoding'], undefined, 'no chunks for HTTP/1.0');
  t.equal(rest, 'abcdefghij');
  const kept = await connectRaw(t, port);
  for (let i = 0; i < 2; i++) {
    kept.write('GET /kept HTTP/1.0\r\nhost: a\r\nconnection: keep-alive\r\n\r\n');
    const [message] = await readMessages(kept, 1);
    t.match(message, { status: 200, headers: { connection: 'keep-alive' } });
  }
});

t.test('the authority is taken from an absolute target', async (t) => {
  const { text } = await rawExchange(
    proxy.port,
    'GET http://absolute.test:81/path?q HTTP/1.1\r\nhost: other.test\r\nconnection: close\r\n\r\n',
  );
  t.match(parseMessage(text), { status: 200, rest: '/path?q' });
  const { head } = upstream.requests.at(-1)!;
  t.match(head, /^GET \/path\?q HTTP\/1\.1\r\n/);
  t.match(parseMessage(`${head}\r\n\r\n`).headers, { host: 'absolute.test:81' });
  const bare = await rawExchange(
    proxy.port,
    'GET http://absolute.test HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n',
  );
  t.match(parseMessage(bare.text), { status: 200, rest: '/' });
  const options = await rawExchange(proxy.port, 'OPTIONS * HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n');
  t.equal(parseMessage(options.text).status, 404, 'no route begins with *');
});

t.test('hop-by-hop fields are not forwarded', async (t) => {
  await rawExchange(
    proxy.port,
    'GET /hop HTTP/1.1\r\nhost: a\r\nconnection: x-mine, close\r\nx-mine: 1\r\nkeep-alive: timeout=5\r\n' +
      'proxy-connection: keep-alive\r\nx-kept: 2\r\n\r\n',
  );
  const { headers } = parseMessage(`${upstream.requests.at(-1)!.head}\r\n\r\n`);
  t.match(headers, { 'x-kept': '2' });
  for (const name of ['connection', 'keep-alive', 'proxy-connection', 'x-mine'])
    t.equal(headers[name], undefined, name);
  const { text } = await rawExchange(proxy.port, 'GET /hop HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n');
  t.notMatch(parseMessage(text).headers, { 'keep-alive': /./ });
});

t.test('methods, and statuses without a reason phrase, are forwarded unchanged', async (t) => {
  for (const method of METHODS.split(' ')) {
    await rawExchange(proxy.port, `${method} /method HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`);
    t.equal(upstream.requests.at(-1)!.method, method);
  }
  const odd = await rawExchange(proxy.port, 'GET /599 HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n');
  t.match(parseMessage(odd.text), { status: 599, rest: 'odd' });
});

t.test('methods that Envoy does not know are refused, unless the configuration allows all', async (t) => {
  const seen = upstream.requests.length;
  for (const method of ['FETCH', 'M-SEARCH', 'get', 'GETS', 'GE', 'UNSUBSCRIBES']) {
    const bytes = `${method} /method HTTP/1.1\r\nhost: a\r\n\r\n`;
    const { text } = await rawExchange(proxy.ports['logged']!, bytes + bytes);
    const { headers, rest, status } = parseMessage(text);
    t.match({ status, rest, ...headers }, { status: 400, rest: 'Bad Request', connection: 'close' }, method);
    await rawExchange(proxy.ports['custom']!, `${bytes.slice(0, -2)}connection: close\r\n\r\n`);
    t.equal(upstream.requests.at(-1)!.method, method);
  }
  t.equal(upstream.requests.length, seen + 6, 'refused methods reached no host');
  await proxy.baton.waitForStats({ 'http.logged.downstream_cx_protocol_error': 6 });
  await waitFor(() => readFileSync(LOG, 'utf8').startsWith('FETCH 400 http1.codec_error DPE\n'), {
    what: 'the log line',
  });
  const invalid = await rawExchange(proxy.ports['custom']!, 'FE(TCH / HTTP/1.1\r\nhost: a\r\n\r\n');
  t.equal(parseMessage(invalid.text).status, 400, 'not a token');
});

t.test('field values keep their bytes and their order', async (t) => {
  await rawExchange(
    proxy.port,
    'GET /bytes HTTP/1.1\r\nHoSt: a\r\nX-Latin: \xe4\xf6\xfc\xff\r\nX-Many: 1\r\nx-many: 2\r\nX-Empty:\r\n' +
      'X-Space:  \t a b \t \r\nconnection: close\r\n\r\n',
  );
  const { head } = upstream.requests.at(-1)!;
  const { headers } = parseMessage(`${head}\r\n\r\n`);
  t.match(headers, { 'x-latin': '\xe4\xf6\xfc\xff', 'x-many': '1,2', 'x-empty': '', 'x-space': 'a b' });
});

t.test('repeated fields are not merged', async (t) => {
  const { text } = await rawExchange(proxy.port, 'GET /cookies HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n');
  t.match(text, /\r\nset-cookie: a=1; path=\/\r\n/i);
  t.match(text, /\r\nset-cookie: b=2, c\r\n/i);
});

t.test('bytes that arrive one by one make the same messages', async (t) => {
  const connection = await connectRaw(t, proxy.port);
  const bytes =
    'POST /held/drops?q=1 HTTP/1.1\r\nhost: a\r\nx-long: some value\r\ntransfer-encoding: chunked\r\n\r\n' +
    '3\r\nabc\r\n10;x=y\r\n0123456789abcdef\r\n0\r\n\r\n';
  await sendByteByByte(connection.socket, bytes);
  await waitFor(() => held.length === 1);
  const { head, socket } = held.pop()!;
  t.match(parseMessage(`${head}\r\n\r\n`), {
    startLine: 'POST /held/drops?q=1 HTTP/1.1',
    headers: { 'x-long': 'some value' },
  });
  await sendByteByByte(
    socket,
    'HTTP/1.1 200 OK\r\nx-answer: yes\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0001\r\n!\r\n0\r\n\r\n',
  );
  t.match(parseMessage(await connection.readUntil('\r\n\r\n')).headers, { 'x-answer': 'yes' });
  t.equal(dechunk(await connection.readUntil('0\r\n\r\n')).body, 'hello!');
});

/** Responses of the host by path; other paths are answered with the path. */
function answers(): Record<string, string> {
  return {
    '/length': 'HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n',
    '/head-chunked': 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n',
    '/204': 'HTTP/1.1 204 No Content\r\n\r\n',
    '/304': 'HTTP/1.1 304 Not Modified\r\ncontent-length: 10\r\netag: "a"\r\n\r\n',
    '/chunked': 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n7\r\ndefghij\r\n0\r\n\r\n',
    '/oddly-coded': 'HTTP/1.1 200 OK\r\ntransfer-encoding:  Chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n',
    '/trailers':
      'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n5\r\nabcde\r\n0\r\nx-sum: 15\r\nx-more: yes\r\n\r\n',
    '/hop': 'HTTP/1.1 200 OK\r\nconnection: keep-alive\r\nkeep-alive: timeout=9\r\ncontent-length: 0\r\n\r\n',
    '/cookies': response(200, '', { 'set-cookie': 'a=1; path=/', 'Set-Cookie': 'b=2, c' }),
    '/599': 'HTTP/1.1 599\r\ncontent-length: 3\r\n\r\nodd',
  };
}

/** Reads the next responses, each with a content-length, as messages whose rest is the body. */
async function readMessages(connection: RawConnection, count: number): Promise<Message[]> {
  const messages: Message[] = [];
  while (messages.length < count) {
    const message = parseMessage(await connection.readUntil('\r\n\r\n'));
    messages.push({ ...message, rest: await connection.read(Number(message.headers['content-length'])) });
  }
  return messages;
}

async function readBodies(connection: RawConnection, count: number): Promise<string[]> {
  return (await readMessages(connection, count)).map(({ rest }) => rest);
}

/** Sends each byte separately. */
async function sendByteByByte(socket: Socket, bytes: string): Promise<void> {
  for (const byte of bytes) {
    socket.write(byte, 'latin1');
    await new Promise((resolve) => setImmediate(resolve));
  }
}
