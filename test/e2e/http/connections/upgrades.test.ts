// WebSocket and other upgrades: after a 101, bytes are forwarded unchanged in both directions until either side closes.

import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import t from 'tap';
import {
  type Config,
  connectRaw,
  fileAccessLog,
  logLines,
  type RawConnection,
  staticCluster,
  type Teardown,
  tempDir,
  waitFor,
  withDeadline,
} from '../../harness/index.js';
import { dechunk, parseMessage } from '../message.js';
import { managerOf, routeTo, startProxy } from '../proxy.js';
import { type RawRequest, response, startRawUpstream } from '../raw-upstream.js';

const SWITCHING =
  'HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: abc\r\n\r\n';

const NAMING = SWITCHING.replace('Upgrade\r\n', 'Upgrade, x-hop\r\nx-hop: 1\r\nx-end: 2\r\n');

/** Malformed 101 responses, by path. */
const ODD: Readonly<Record<string, string>> = {
  '/echo/bare': SWITCHING.replace('upgrade: websocket\r\n', ''),
  '/echo/other': SWITCHING.replace('websocket', 'other'),
};

/** Complete responses of hosts that do not switch, by path. */
const DECLINING: Readonly<Record<string, string>> = {
  '/decline/length': response(200, 'declined'),
  '/decline/chunked': 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n8\r\ndeclined\r\n0\r\n\r\n',
  '/decline/until-end': 'HTTP/1.1 200 OK\r\n\r\ndeclined',
};

const ACTIVE = 'http.main.downstream_cx_upgrades_active';
const TOTAL = 'http.main.downstream_cx_upgrades_total';
const SWITCHED = 'cluster.raw.upstream_rq_101';

const tunnels: RawRequest[] = [];
const upstream = await startRawUpstream(t, (request) => {
  const { path, socket } = request;
  if (path.startsWith('/refuse')) socket.write(response(400, 'no'));
  else if (path.startsWith('/plain')) socket.write(response(200, 'plain'));
  else if (path in DECLINING) {
    socket.write(DECLINING[path]!);
    if (path === '/decline/until-end') socket.end();
  } else if (path.startsWith('/again') && tries(path) < 3) {
    if (tries(path) === 2) socket.write(response(503, 'not yet'));
  } else if (path.startsWith('/eager')) socket.write(`${SWITCHING}first words`);
  else if (!path.startsWith('/hang')) {
    // From here on the bytes belong to the tunnel.
    socket.removeAllListeners('data').removeAllListeners('end');
    tunnels.push(request);
    socket.write(ODD[path] ?? (path.startsWith('/named') ? NAMING : SWITCHING));
    if (path.startsWith('/echo')) {
      socket.on('data', (chunk: string) => socket.write(chunk, 'latin1')).on('end', () => socket.end());
    }
  }
});

const websocket = { upgrade_configs: [{ upgrade_type: 'websocket' }] };
const routes = [
  routeTo({ prefix: '/echo/off' }, 'raw', { upgrade_configs: [{ upgrade_type: 'websocket', enabled: false }] }),
  routeTo({ prefix: '/echo/short' }, 'raw', { timeout: '0.2s' }),
  routeTo({ prefix: '/tunnel/short' }, 'raw', { timeout: '0.2s' }),
  routeTo({ prefix: '/hang/long' }, 'raw', { timeout: '0s' }),
  routeTo({ prefix: '/hang' }, 'raw', { timeout: '0.2s' }),
  routeTo({ prefix: '/again' }, 'raw', {
    timeout: '0s',
    retry_policy: {
      retry_on: '5xx',
      num_retries: 2,
      per_try_timeout: '0.2s',
      retry_back_off: { base_interval: '0.001s' },
    },
  }),
  routeTo({ prefix: '/refuse/unasked' }, 'raw', {}, { request_headers_to_remove: ['upgrade'] }),
  routeTo({ prefix: '/tunnel/unasked' }, 'raw', {}, { request_headers_to_remove: ['upgrade'] }),
  routeTo({ prefix: '/refuse/unmeasured' }, 'raw', {}, { request_headers_to_remove: ['content-length'] }),
  routeTo({ prefix: '/echo/unnamed' }, 'raw', {}, { response_headers_to_remove: ['upgrade'] }),
  routeTo({ prefix: '/' }, 'raw'),
];
const proxy = await startProxy(t, {
  listeners: {
    main: managerOf(routes, websocket),
    without: managerOf(routes),
    routeOnly: managerOf([routeTo({ prefix: '/' }, 'raw', { upgrade_configs: [{ upgrade_type: 'websocket' }] })]),
    lost: managerOf([routeTo({ prefix: '/elsewhere' }, 'raw')], websocket),
    lostWithout: managerOf([routeTo({ prefix: '/elsewhere' }, 'raw')]),
    idle: managerOf([routeTo({ prefix: '/' }, 'raw')], { ...websocket, stream_idle_timeout: '0.3s' }),
  },
  clusters: [staticCluster('raw', upstream.port)],
});

t.test('bytes are forwarded in both directions after the handshake', async (t) => {
  const connection = await open(t, proxy.port, '/echo');
  const { head } = tunnels.at(-1)!;
  const { headers } = parseMessage(`${head}\r\n\r\n`);
  t.match(headers, { upgrade: 'websocket', connection: /upgrade/i, 'sec-websocket-key': 'xyz' });
  for (const text of ['hello', '\x00\xff\r\n\r\nGET / HTTP/1.1', 'x'.repeat(100_000)]) {
    connection.write(text);
    t.ok((await connection.read(text.length)) === text, `${text.length} bytes come back`);
  }
  connection.end();
  t.same(await connection.readToEnd(), { text: '', closed: 'end' }, 'a close is forwarded and answered');
});

t.test("hop-by-hop fields of the host's 101 are not forwarded", async (t) => {
  const connection = await connectRaw(t, proxy.port);
  connection.write(handshake('/named'));
  const { headers } = parseMessage(await connection.readUntil('\r\n\r\n'));
  t.match(headers, { upgrade: 'websocket', connection: /^upgrade$/i, 'x-end': '2' });
  t.equal(headers['x-hop'], undefined);
  tunnels.at(-1)!.socket.end();
  await connection.readToEnd();
});

t.test('a request whose upgrade header a route removes is a plain request for the host', async (t) => {
  const connection = await connectRaw(t, proxy.port);
  connection.write(handshake('/refuse/unasked'));
  const { status } = parseMessage(await connection.readUntil(/\r\n\r\nno$/));
  t.equal(status, 400, "the host's response to a plain request");
  t.notMatch(upstream.requests.at(-1)!.head, /\r\n(connection|upgrade|transfer-encoding):/i);
  const other = await connectRaw(t, proxy.port);
  other.write(handshake('/tunnel/unasked'));
  t.match(await other.readUntil(/\r\n\r\n/), /^HTTP\/1\.1 502 /, 'and it may not switch');
});

t.test('a 101 whose upgrade header a route removes is sent without it', async (t) => {
  const connection = await connectRaw(t, proxy.port);
  connection.write(handshake('/echo/unnamed'));
  const { headers } = parseMessage(await connection.readUntil('\r\n\r\n'));
  t.notOk('connection' in headers || 'upgrade' in headers);
});

t.test('frames sent together with the handshake are not lost', async (t) => {
  const client = await connectRaw(t, proxy.port);
  client.write(`${handshake('/echo')}eager frame`);
  t.match(await client.readUntil('eager frame'), /^HTTP\/1\.1 101 /, 'sent by the client');
  const host = await connectRaw(t, proxy.port);
  host.write(handshake('/eager'));
  t.match(await host.readUntil('first words'), /^HTTP\/1\.1 101 /, 'sent by the host');
});

t.test(
  'the body of an upgrade request reaches the host first, and later bytes only after the host has switched',
  async (t) => {
    const connection = await connectRaw(t, proxy.port);
    connection.write(posting('/hang/long/posted', 4));
    await waitFor(() => tries('/hang/long/posted') === 1);
    const { head, socket } = upstream.requests.at(-1)!;
    const { headers } = parseMessage(`${head}\r\n\r\n`);
    t.match(headers, { upgrade: 'websocket', connection: /upgrade/i, 'content-length': '4' });
    socket.removeAllListeners('data');
    const body = once(socket, 'data');
    connection.write('bodyframe');
    t.same(await withDeadline(body, 'the body'), ['body']);
    const frame = once(socket, 'data');
    socket.write(`${SWITCHING}first words`);
    t.same(await withDeadline(frame, 'the frame'), ['frame']);
    t.match(await connection.readUntil('first words'), /^HTTP\/1\.1 101 /);
    connection.end();
    t.same(await connection.readToEnd(), { text: '', closed: 'end' });
  },
);

t.test(
  'a host may switch before it has the whole body, or refuse; a body does not let a request bypass the upgrade check',
  async (t) => {
    const hasty = await connectRaw(t, proxy.port);
    hasty.write(`${posting('/echo', 8)}half`);
    await hasty.readUntil('\r\n\r\n');
    hasty.write('restmore');
    await hasty.readUntil('restmore');
    const refused = await connectRaw(t, proxy.port);
    refused.write(`${posting('/refuse', 4)}body`);
    t.match(parseMessage((await refused.readToEnd()).text), { status: 400, rest: 'no' });
    const banned = await connectRaw(t, proxy.port);
    banned.write(`${posting('/echo/off', 4)}body`);
    t.match(parseMessage((await banned.readToEnd()).text), { status: 403, rest: '' });
  },
);

t.test('an upgrade body whose length a route removes is not parsed as a request by a host that refuses', async (t) => {
  const connection = await connectRaw(t, proxy.port);
  const body = 'GET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n';
  connection.write(posting('/refuse/unmeasured', body.length) + body);
  t.match(parseMessage((await connection.readToEnd()).text), { status: 400, rest: 'no' });
  t.equal(tries('/smuggled'), 0);
  t.match(upstream.requests.at(-1)!.head, `\r\ncontent-length: ${body.length}`);
});

t.test('a close on either side closes the tunnel', async (t) => {
  const first = await open(t, proxy.port, '/tunnel');
  tunnels.at(-1)!.socket.end('bye');
  t.same(await first.readToEnd(), { text: 'bye', closed: 'end' });
});

t.test('the directions of a tunnel end one by one, whichever is first', async (t) => {
  const BLOCK = 'x'.repeat(1 << 20);
  for (const first of ['client', 'host'] as const) {
    const connection = await open(t, proxy.port, '/tunnel');
    const { socket } = tunnels.at(-1)!;
    const ended = once(socket, 'end');
    // The host does not read yet: most of what is sent waits on the way.
    socket.pause();
    let received = 0;
    socket.on('data', (chunk: string) => (received += chunk.length));
    socket.pause();
    connection.write(BLOCK);
    if (first === 'client') connection.end();
    else {
      socket.end('bye');
      t.same(await connection.readToEnd(), { text: 'bye', closed: 'end' });
      connection.write(BLOCK);
    }
    socket.resume();
    if (first === 'host') {
      await waitFor(() => received === 2 * BLOCK.length, { what: 'all that the client has sent' });
      await proxy.baton.waitForStat(ACTIVE, 1);
      connection.end();
    }
    await withDeadline(ended, 'the host to see the end of the client');
    t.equal(received, (first === 'client' ? 1 : 2) * BLOCK.length, `${first} first: all bytes arrive`);
    if (first === 'client') {
      socket.end('last words');
      t.same(await connection.readToEnd(), { text: 'last words', closed: 'end' });
    }
    await proxy.baton.waitForStats({
      [ACTIVE]: 0,
      'http.main.downstream_rq_active': 0,
      'cluster.raw.upstream_rq_active': 0,
    });
  }
});

t.test('logs and stats name the side that has ended a tunnel first', async (t) => {
  const file = join(tempDir(t), 'log');
  const format = '%RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% %REQUEST_DURATION% %RESPONSE_TX_DURATION%\n';
  const { baton, port } = await startProxy(t, {
    listeners: {
      main: managerOf([routeTo({ prefix: '/' }, 'raw')], {
        upgrade_configs: [{ upgrade_type: 'websocket' }],
        access_log: [fileAccessLog(file, format)],
      }),
    },
    clusters: [staticCluster('raw', upstream.port)],
    args: ['-l', 'warning', '--file-flush-interval-msec', '20'],
  });
  const byClient = await open(t, port, '/echo');
  byClient.end();
  await byClient.readToEnd();
  await waitFor(() => logLines(file).length === 1, { what: 'the first line' });
  await baton.waitForStats({
    'cluster.raw.upstream_cx_destroy_local_with_active_rq': 1,
    'cluster.raw.upstream_cx_destroy_remote_with_active_rq': 0,
    'http.main.downstream_cx_destroy_remote_active_rq': 1,
    'http.main.downstream_rq_rx_reset': 1,
    'http.main.downstream_rq_tx_reset': 0,
    'http.main.downstream_rq_response_before_rq_complete': 1,
  });
  const byHost = await open(t, port, '/tunnel');
  tunnels.at(-1)!.socket.end();
  await byHost.readToEnd();
  byHost.end();
  await waitFor(() => logLines(file).length === 2, { what: 'the second line' });
  t.same(logLines(file), [
    '101 DC downstream_remote_disconnect - -',
    '101 UC upstream_reset_after_response_started{connection_termination} - -',
  ]);
  await baton.waitForStats({
    'cluster.raw.upstream_cx_destroy_local_with_active_rq': 1,
    'cluster.raw.upstream_cx_destroy_remote_with_active_rq': 1,
    'cluster.raw.upstream_cx_destroy_remote': 1,
    'http.main.downstream_cx_destroy_remote_active_rq': 1,
    'http.main.downstream_rq_tx_reset': 1,
  });
});

t.test('a tunnel that breaks after its host has ended is reset on the other side', async (t) => {
  for (const broken of ['client', 'host', 'time'] as const) {
    const connection = await open(t, broken === 'time' ? proxy.ports['idle']! : proxy.port, '/tunnel');
    const { socket } = tunnels.at(-1)!;
    socket.end('bye');
    t.same(await connection.readToEnd(), { text: 'bye', closed: 'end' });
    connection.write('half of it');
    await withDeadline(once(socket, 'data'), 'what the client has sent');
    if (broken === 'host') {
      socket.resetAndDestroy();
      await proxy.baton.waitForStat(ACTIVE, 0);
      // Node reads nothing after an end: only a write shows it what became of the connection.
      await waitFor(() => connection.closed === 'reset' || !connection.socket.write('more'), { what: 'the reset' });
      continue;
    }
    const seen = once(socket, 'error');
    if (broken === 'client') connection.reset();
    t.match(await withDeadline(seen, 'the reset'), [{ code: 'ECONNRESET' }], broken);
  }
});

t.test('an aborted side does not look complete on the other', async (t) => {
  const first = await open(t, proxy.port, '/tunnel');
  const host = tunnels.at(-1)!.socket;
  first.write('half of it');
  await withDeadline(once(host, 'data'), 'what the client has sent');
  const broken = withDeadline(once(host, 'error'), 'the host to see the reset');
  first.reset();
  t.match(await broken, [{ code: 'ECONNRESET' }]);

  const second = await open(t, proxy.port, '/tunnel');
  const { socket } = tunnels.at(-1)!;
  socket.write('half of it');
  await second.readUntil('half of it');
  socket.resetAndDestroy();
  t.same(await second.readToEnd(), { text: '', closed: 'reset' });
});

t.test('a client that disconnects before the response cancels its request', async (t) => {
  const { length } = upstream.requests;
  const client = await connectRaw(t, proxy.port);
  client.write(handshake('/hang/long'));
  await waitFor(() => upstream.requests.length > length);
  client.end();
  const { socket } = upstream.requests.at(-1)!;
  await waitFor(() => socket.destroyed, { what: 'the host to see the close' });
  await proxy.baton.waitForStat('http.main.downstream_cx_upgrades_active', 0);
});

t.test('a large transfer is forwarded unchanged at any speed', async (t) => {
  const connection = await open(t, proxy.port, '/echo');
  const block = Buffer.from(Array.from({ length: 1 << 20 }, (_, index) => (index * 31 + (index >> 8)) & 255));
  const sent = createHash('sha256');
  const received = createHash('sha256');
  const BLOCKS = 16;
  let bytes = 0;
  connection.socket.removeAllListeners('data').setEncoding('latin1');
  connection.socket.on('data', (chunk: string) => {
    received.update(chunk, 'latin1');
    bytes += chunk.length;
  });
  for (let i = 0; i < BLOCKS; i++) {
    sent.update(block);
    connection.write(block);
  }
  await waitFor(() => bytes === BLOCKS * block.length);
  t.equal(received.digest('hex'), sent.digest('hex'));
});

t.test('a tunnel outlives the route timeout, and idle tunnels are closed', async (t) => {
  const connection = await open(t, proxy.port, '/echo/short');
  t.equal((await proxy.get('/hang')).status, 504, 'the timeout of a request that began later has ended');
  connection.write('still here');
  t.equal(await connection.read(10), 'still here');
  const idle = await open(t, proxy.ports['idle']!, '/echo');
  t.equal((await idle.readToEnd()).text, '');
});

t.test('a half-closed tunnel outlives the route timeout too', async (t) => {
  const connection = await open(t, proxy.port, '/tunnel/short');
  const { socket } = tunnels.at(-1)!;
  const ended = once(socket.resume(), 'end');
  connection.end();
  await withDeadline(ended, 'the host to see the end of the client');
  t.equal((await proxy.get('/hang')).status, 504, 'the timeout of a request that began later has ended');
  socket.end('last words');
  t.same(await connection.readToEnd(), { text: 'last words', closed: 'end' });
});

t.test('an upgrade without a response times out as its route says', async (t) => {
  const connection = await connectRaw(t, proxy.port);
  connection.write(handshake('/hang'));
  const { text } = await connection.readToEnd();
  t.match(parseMessage(text), { status: 504, rest: 'upstream request timeout' });
});

t.test('an upgrade is retried like other requests while no tunnel bytes were sent', async (t) => {
  const connection = await open(t, proxy.port, '/again');
  t.equal(tries('/again'), 3, 'a timeout, a refusal, and a success');
  connection.write('frame');
  const { socket } = tunnels.at(-1)!;
  t.same(await withDeadline(once(socket, 'data'), 'what the client sends'), ['frame']);
  socket.end();
  await connection.readToEnd();
});

t.test('a disallowed upgrade is refused with 403', async (t) => {
  for (const [port, path] of [
    [proxy.ports['without']!, '/echo'],
    [proxy.port, '/echo/off'],
  ] as const) {
    const { length } = upstream.requests;
    const connection = await connectRaw(t, port);
    connection.write(handshake(path));
    t.match(parseMessage((await connection.readToEnd()).text), { status: 403, rest: '' });
    t.equal(upstream.requests.length, length, 'nothing reaches the host');
  }
  const other = await connectRaw(t, proxy.port);
  other.write(handshake('/echo').replace('upgrade: websocket', 'upgrade: other'));
  t.equal(parseMessage((await other.readToEnd()).text).status, 403, 'a different protocol');
  for (const choice of [
    'websocket, h2c',
    'h2c, websocket',
    'h2c, h2c',
    'websocket\r\nupgrade: h2c',
    'h2c\r\nupgrade: websocket',
    'h2c\r\nupgrade: h2c\r\nupgrade: websocket',
    'websocket\r\nupgrade: websocket',
  ]) {
    const { length } = upstream.requests;
    const choosing = await connectRaw(t, proxy.port);
    choosing.write(handshake('/echo').replace('upgrade: websocket', `upgrade: ${choice}`));
    t.equal(parseMessage((await choosing.readToEnd()).text).status, 403, JSON.stringify(choice));
    t.equal(upstream.requests.length, length, 'nothing reaches the host');
  }
  t.equal(await proxy.baton.stat('http.without.downstream_rq_ws_on_non_ws_route'), 1);
});

t.test('h2c is not offered: a request for it, with any number of fields, is a plain request', async (t) => {
  for (const fields of ['upgrade: h2c', 'Upgrade:\tH2C', 'upgrade: h2c\r\nupgrade: h2c']) {
    for (const port of [proxy.port, proxy.ports['without']!]) {
      const connection = await connectRaw(t, port);
      const head = `host: a\r\nconnection: Upgrade, HTTP2-Settings\r\n${fields}\r\nhttp2-settings: AAM\r\n`;
      for (const [path, request] of [
        ['/plain/get', `GET /plain/get HTTP/1.1\r\n${head}\r\n`],
        ['/plain/put', `PUT /plain/put HTTP/1.1\r\n${head}transfer-encoding: chunked\r\n\r\n1\r\n!\r\n0\r\n\r\n`],
        ['/plain/more', `GET /plain/more HTTP/1.1\r\n${head}\r\n`],
      ] as const) {
        connection.write(request);
        const { status, headers } = parseMessage(await connection.readUntil(/\r\n\r\nplain$/));
        t.match(
          { status, ...headers },
          { status: 200, connection: undefined, upgrade: undefined },
          'the response is plain',
        );
        const asked = upstream.requests.at(-1)!;
        t.equal(asked.path, path);
        t.notMatch(asked.head, /\r\n(connection|upgrade|http2-settings):/i, 'no upgrade is forwarded');
      }
    }
  }
  const total = await proxy.baton.stat(TOTAL);
  const believing = await connectRaw(t, proxy.port);
  believing.write(handshake('/eager').replace('websocket', 'h2c'));
  t.equal(parseMessage(await believing.readUntil('protocol error')).status, 502, 'the host may not switch');
  t.equal(await proxy.baton.stat(TOTAL), total);
});

t.test('an upgrade without a matching route is answered like any other request', async (t) => {
  const { length } = upstream.requests;
  for (const listener of ['lost', 'lostWithout']) {
    const connection = await connectRaw(t, proxy.ports[listener]!);
    connection.write(handshake('/echo'));
    t.match(parseMessage((await connection.readToEnd()).text), { status: 404, rest: '' }, listener);
    t.equal(await proxy.baton.stat(`http.${listener}.downstream_rq_ws_on_non_ws_route`), 0);
    t.equal(await proxy.baton.stat(`http.${listener}.no_route`), 1);
  }
  t.equal(await proxy.baton.stat('http.lostWithout.downstream_cx_upgrades_total'), 0);
  t.equal(upstream.requests.length, length);
});

t.test('a route may allow an upgrade on its own', async (t) => {
  const connection = await open(t, proxy.ports['routeOnly']!, '/echo');
  connection.write('hello');
  t.equal(await connection.read(5), 'hello');
});

t.test('the response of a host that refuses the upgrade is forwarded', async (t) => {
  const connection = await connectRaw(t, proxy.port);
  connection.write(handshake('/refuse'));
  t.match(parseMessage(await connection.readUntil(/\r\n\r\nno/)), { status: 400 });
});

t.test(
  'the response of a host that does not switch is forwarded, and later bytes are not parsed as another request',
  async (t) => {
    for (const path of Object.keys(DECLINING)) {
      for (const more of ['', 'GET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n']) {
        const connection = await connectRaw(t, proxy.port);
        connection.write(handshake(path) + more);
        const { text, closed } = await connection.readToEnd();
        const { status, headers, rest } = parseMessage(text);
        t.match({ status, ...headers }, { status: 200, connection: 'close', upgrade: undefined }, path);
        const isChunked = headers['transfer-encoding'] === 'chunked';
        const whole = { body: 'declined', isComplete: true, rest: '' };
        t.match(isChunked ? dechunk(rest) : { ...whole, body: rest }, whole, path);
        t.equal(closed, 'end', `${path}: in order`);
      }
    }
    t.equal(tries('/smuggled'), 0);
    await proxy.baton.waitForStat(ACTIVE, 0);
  },
);

t.test('a 101 without a protocol, or with another one, is accepted', async (t) => {
  const { baton } = proxy;
  for (const [path, named] of [
    ['/echo/bare', undefined],
    ['/echo/other', 'other'],
  ] as const) {
    await baton.waitForStat(ACTIVE, 0);
    const [total, switched] = [await baton.stat(TOTAL), (await baton.stat(SWITCHED)) ?? 0];
    const connection = await connectRaw(t, proxy.port);
    connection.write(handshake(path));
    const { status, headers } = parseMessage(await connection.readUntil('\r\n\r\n'));
    t.match({ status, ...headers }, { status: 101, 'sec-websocket-accept': 'abc', upgrade: named }, path);
    t.equal(headers['connection']?.toLowerCase(), named && 'upgrade', 'connection names the forwarded fields only');
    const bytes = 'GET /smuggled HTTP/1.1\r\n\r\n';
    connection.write(bytes);
    t.equal(await connection.read(bytes.length), bytes, 'raw bytes follow');
    await baton.waitForStats({ [TOTAL]: total! + 1, [SWITCHED]: switched + 1, [ACTIVE]: 1 });
    const { socket } = tunnels.at(-1)!;
    t.equal((await proxy.get('/plain')).body, 'plain');
    t.not(upstream.requests.at(-1)!.socket, socket, 'its connection is not reused');
    connection.end();
    t.same(await connection.readToEnd(), { text: '', closed: 'end' });
    await waitFor(() => socket.destroyed, { what: 'the connection to the host to end' });
    await baton.waitForStat(ACTIVE, 0);
  }
  t.equal(tries('/smuggled'), 0);
});

t.test('an unrequested 101 is a protocol error', async (t) => {
  const connection = await connectRaw(t, proxy.port);
  connection.write('GET /eager HTTP/1.1\r\nhost: a\r\n\r\n');
  t.equal(parseMessage(await connection.readUntil('protocol error')).status, 502);
});

t.test('open tunnels are counted', async (t) => {
  const { baton } = proxy;
  const total = 'http.routeOnly.downstream_cx_upgrades_total';
  const before = (await baton.stat(total))!;
  await baton.waitForStat('http.routeOnly.downstream_cx_upgrades_active', 0);
  const connection = await open(t, proxy.ports['routeOnly']!, '/echo');
  await baton.waitForStat('http.routeOnly.downstream_cx_upgrades_active', 1);
  t.equal(await baton.stat(total), before + 1);
  connection.destroy();
  await baton.waitForStat('http.routeOnly.downstream_cx_upgrades_active', 0);
});

function tries(path: string): number {
  return upstream.requests.filter((request) => request.path === path).length;
}

function handshake(path: string): string {
  const fields: Config = { host: 'a', connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-key': 'xyz' };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  return `GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`;
}

/** Returns a handshake that announces a body. */
function posting(path: string, length: number): string {
  return handshake(path).replace('GET', 'POST').replace(/\r\n$/, `content-length: ${length}\r\n\r\n`);
}

/** Opens a connection and completes its handshake. */
async function open(t: Teardown, port: number, path: string): Promise<RawConnection> {
  const connection = await connectRaw(t, port);
  connection.write(handshake(path));
  const { status, headers } = parseMessage(await connection.readUntil('\r\n\r\n'));
  if (status !== 101 || headers['upgrade'] !== 'websocket' || headers['connection']?.toLowerCase() !== 'upgrade') {
    throw new Error(`no upgrade but ${status} ${JSON.stringify(headers)}`);
  }
  return connection;
}
