// Tunnels: WebSocket over HTTP/2 (RFC 8441) and over HTTP/1.1, to hosts of either version, and CONNECT, forwarded or ended here.

import { createServer as createHttp, type IncomingHttpHeaders } from 'node:http';
import { createServer, type OutgoingHttpHeaders } from 'node:http2';
import { type AddressInfo, createServer as createTcp, type Server, type Socket } from 'node:net';
import t from 'tap';
import { besideEnvoy } from '../../harness/envoy.js';
import {
  type Config,
  clusterHttpOptions,
  connectRaw,
  fileAccessLog,
  HTTP2_CLUSTER,
  logLines,
  staticCluster,
  type Teardown,
  tempDir,
  waitFor,
  withDeadline,
} from '../../harness/index.js';
import { managerOf, routeTo, startProxy } from '../proxy.js';
import { openSession } from './http2-client.js';

const HOSTS = ['h1', 'h2'] as const;
const ECHO: Record<(typeof HOSTS)[number], string> = { h1: 'h1:', h2: 'h2:' };

interface Requested {
  readonly method: string;
  readonly target: string;
  readonly headers: IncomingHttpHeaders;
}

async function listen(t: Teardown, server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => sockets.add(socket.on('error', () => {})));
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** Answers each piece with itself, and the end with `bye`. */
function echo(socket: Socket, name: string): void {
  socket.on('data', (bytes: Buffer) => socket.write(Buffer.concat([Buffer.from(name), bytes])));
  socket.on('end', () => socket.end('bye'));
  socket.on('error', () => {});
}

/** A host of HTTP/1.1 that accepts tunnels, unless their target contains `no`. */
async function startH1(t: Teardown, requests: Requested[]): Promise<number> {
  const server = createHttp((_, answer) => answer.end('plain'));
  const accept = (head: string) => (request: { method?: string; url?: string; headers: object }, socket: Socket) => {
    const { headers, method = '', url = '' } = request;
    requests.push({ method, target: url, headers: headers as IncomingHttpHeaders });
    if (url.includes('no')) {
      socket.end('HTTP/1.1 403 No\r\ncontent-length: 2\r\n\r\nno');
      return;
    }
    socket.write(head);
    echo(socket, ECHO.h1);
  };
  server.on(
    'upgrade',
    accept(
      'HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: x\r\n\r\n',
    ),
  );
  server.on('connect', accept('HTTP/1.1 200 OK\r\nx-a: b\r\n\r\n'));
  return listen(t, server);
}

/** The same for HTTP/2. */
async function startH2(t: Teardown, requests: Requested[], enableConnectProtocol = true): Promise<number> {
  const server = createServer({ settings: { enableConnectProtocol } });
  server.on('connect', () => {});
  server.on('stream', (stream, headers) => {
    const target = String(headers[':path'] ?? headers[':authority']);
    requests.push({ method: String(headers[':method']), target, headers });
    stream.on('error', () => {});
    if (headers[':method'] !== 'CONNECT' || target.includes('no')) {
      stream.respond({ ':status': 403 });
      stream.end('no');
      return;
    }
    stream.respond({ ':status': 200, 'x-a': 'b' });
    echo(stream as unknown as Socket, ECHO.h2);
  });
  return listen(t, server as unknown as Server);
}

interface Tunnel {
  readonly status: number;
  readonly headers: Record<string, unknown>;
  /** Sends a text and waits until it has come back, after `prefix`. */
  exchange(text: string, prefix: string): Promise<void>;
  /** All bytes that have come back. */
  received(): string;
  /** Ends this direction, and waits for the other one. Returns the last bytes. */
  end(): Promise<string>;
  destroy(): void;
}

const UPGRADE: OutgoingHttpHeaders = { ':method': 'CONNECT', ':protocol': 'websocket', ':scheme': 'http' };

/** Opens a tunnel as a stream of HTTP/2, with `endStream` without own bytes. Waits for the response. */
function openStream(
  t: Teardown,
  port: number,
  headers: OutgoingHttpHeaders,
  endStream = false,
): Promise<Tunnel & { code(): number }> {
  const session = openSession(t, port);
  const opened = new Promise<Tunnel & { code(): number }>((resolve, reject) => {
    session.on('error', reject);
    session.on('remoteSettings', () => {
      const stream = session.request(headers, { endStream });
      let received = '';
      const ended = new Promise<void>((done) => stream.on('close', done));
      stream.setEncoding('latin1').on('data', (text: string) => {
        received += text;
      });
      stream.on('error', () => {});
      const tunnel = (status: number, found: Record<string, unknown>) => ({
        status,
        headers: found,
        async exchange(text: string, prefix: string) {
          stream.write(text);
          await waitFor(() => received.includes(`${prefix}${text}`), { what: `${prefix}${text} in ${received}` });
        },
        received: () => received,
        async end() {
          stream.end();
          await withDeadline(ended, 'the end of the stream');
          return received;
        },
        destroy: () => session.destroy(),
        code: () => stream.rstCode ?? 0,
      });
      stream.on('response', (found) => resolve(tunnel(Number(found[':status']), found)));
      stream.on('close', () => resolve(tunnel(0, {})));
    });
  });
  return withDeadline(opened, 'the response to a request for a tunnel');
}

/** Opens a tunnel over HTTP/1.1. Waits for the head of the response. */
async function openConnection(t: Teardown, port: number, head: string): Promise<Tunnel> {
  const connection = await connectRaw(t, port);
  connection.write(`${head}\r\n\r\n`);
  await waitFor(() => connection.received.includes('\r\n\r\n'), { what: 'a head' });
  const [start = '', ...lines] = connection.received.slice(0, connection.received.indexOf('\r\n\r\n')).split('\r\n');
  return {
    status: Number(start.split(' ')[1]),
    headers: Object.fromEntries(lines.map((line) => [line.split(': ')[0]!.toLowerCase(), line.split(': ')[1]])),
    async exchange(text, prefix) {
      connection.write(text);
      await waitFor(() => connection.received.includes(`${prefix}${text}`), { what: `${prefix}${text}` });
    },
    received: () => connection.received,
    async end() {
      connection.end();
      await waitFor(() => connection.closed !== 'open', { what: 'the end of the connection' });
      return connection.received;
    },
    destroy: () => connection.destroy(),
  };
}

const websocket = (path: string) =>
  `GET ${path} HTTP/1.1\r\nhost: a.test\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13`;
const extended = (path: string) => ({
  ...UPGRADE,
  ':path': path,
  ':authority': 'a.test',
  'sec-websocket-version': '13',
});

const ALLOWED = {
  http2_protocol_options: { allow_connect: true },
  upgrade_configs: [{ upgrade_type: 'websocket' }, { upgrade_type: 'CONNECT' }],
};

besideEnvoy('a WebSocket passes from either version of HTTP to either, both ways', async (t, program) => {
  const requests: Requested[] = [];
  const ports = { h1: await startH1(t, requests), h2: await startH2(t, requests) };
  const log = `${tempDir(t)}/log`;
  const proxy = await startProxy(t, {
    ...program,
    args: ['-l', 'warning', '--file-flush-interval-msec', '20'],
    listeners: {
      main: managerOf(
        HOSTS.map((host) => routeTo({ prefix: `/${host}/` }, host)),
        {
          ...ALLOWED,
          access_log: [fileAccessLog(log, '%REQ(:METHOD)% %PROTOCOL% %RESPONSE_CODE% %UPSTREAM_PROTOCOL%\n')],
        },
      ),
    },
    clusters: [staticCluster('h1', ports.h1), staticCluster('h2', ports.h2, HTTP2_CLUSTER)],
  });
  for (const host of HOSTS) {
    for (const client of HOSTS) {
      const path = `/${host}/chat?x=1`;
      const tunnel =
        client === 'h1'
          ? await openConnection(t, proxy.port, websocket(path))
          : await openStream(t, proxy.port, extended(path));
      const name = `${client} to ${host}`;
      t.equal(tunnel.status, client === 'h1' ? 101 : 200, name);
      t.equal(tunnel.headers['upgrade'], client === 'h1' ? 'websocket' : undefined, name);
      t.equal(tunnel.headers[host === 'h1' ? 'sec-websocket-accept' : 'x-a'], host === 'h1' ? 'x' : 'b', name);
      await tunnel.exchange('hello', ECHO[host]);
      await tunnel.exchange('x'.repeat(300), ECHO[host]);
      const { headers, method, target } = requests.pop()!;
      t.equal(target, path, name);
      t.equal(headers['sec-websocket-version'], '13', name);
      if (host === 'h1')
        t.match({ method, ...headers }, { method: 'GET', upgrade: 'websocket', connection: /^upgrade$/i }, name);
      else t.match({ ...headers }, { ':method': 'CONNECT', ':protocol': 'websocket', ':authority': 'a.test' }, name);
      if (client === 'h2' && host === 'h2') t.match(await tunnel.end(), /bye$/, 'each direction ends on its own');
      else tunnel.destroy();
    }
  }
  const versions = { h1: 'HTTP/1.1', h2: 'HTTP/2' };
  const expected = HOSTS.flatMap((host) => HOSTS.map((client) => `GET ${versions[client]} 101 ${versions[host]}`));
  await waitFor(() => logLines(log).length === expected.length, { what: 'the log' });
  t.same(logLines(log).sort(), expected.sort());
  await proxy.baton.waitForStats({
    'http.main.downstream_cx_upgrades_total': 4,
    'http.main.downstream_cx_upgrades_active': 0,
  });
});

besideEnvoy('a host may refuse a WebSocket, and so do connection managers that do not allow it', async (t, program) => {
  const requests: Requested[] = [];
  const ports = {
    h1: await startH1(t, requests),
    h2: await startH2(t, requests),
    off: await startH2(t, requests, false),
  };
  const routes = ['h1', 'h2', 'off'].map((host) => routeTo({ prefix: `/${host}/` }, host));
  const proxy = await startProxy(t, {
    ...program,
    listeners: {
      main: managerOf(routes, ALLOWED),
      plain: managerOf(routes, { http2_protocol_options: { allow_connect: true } }),
      closed: managerOf(routes, { upgrade_configs: ALLOWED.upgrade_configs }),
    },
    clusters: [
      staticCluster('h1', ports.h1),
      staticCluster('h2', ports.h2, HTTP2_CLUSTER),
      staticCluster('off', ports.off, HTTP2_CLUSTER),
    ],
  });
  const { closed, main, plain } = proxy.ports as Record<string, number>;
  for (const [path, status] of [
    ['/h1/no', 403],
    ['/h2/no', 403],
    // A host that does not understand the extension.
    ['/off/x', 502],
  ] as const) {
    t.equal((await openConnection(t, main!, websocket(path))).status, status, path);
    const stream = await openStream(t, main!, extended(path));
    t.equal(stream.status, status, path);
    if (status === 403) t.match(await stream.end(), /no$/);
  }
  t.equal((await openStream(t, main!, { ...extended('/h1/x'), ':protocol': 'other' })).status, 403);
  t.equal((await openStream(t, plain!, extended('/h1/x'))).status, 403);
  t.equal((await openConnection(t, plain!, websocket('/h1/x'))).status, 403);
  // Envoy only closes the connection later.
  if (program.command === undefined) t.equal((await openStream(t, closed!, extended('/h1/x'))).status, 0);
  await proxy.baton.waitForStats({ 'http.main.downstream_rq_ws_on_non_ws_route': 1 });
});

const CONNECT: Config = { connect_matcher: {} };
const named = (name: string): Config => ({
  ...CONNECT,
  headers: [{ name: ':authority', string_match: { prefix: `${name}.` } }],
});
const ending = (config: Config = {}) => ({ upgrade_configs: [{ upgrade_type: 'CONNECT', connect_config: config }] });

besideEnvoy('CONNECT is forwarded to hosts, or ends here with a TCP connection', async (t, program) => {
  const requests: Requested[] = [];
  const tcp = await listen(
    t,
    createTcp((socket) => echo(socket, 'tcp:')),
  );
  const { port: dead } = (await closedPort()) as { port: number };
  const proxy = await startProxy(t, {
    ...program,
    listeners: {
      main: managerOf(
        [
          routeTo(named('tcp'), 'tcp', ending()),
          routeTo(named('v1'), 'tcp', ending({ proxy_protocol_config: { version: 'V1' } })),
          routeTo(named('v2'), 'tcp', ending({ proxy_protocol_config: { version: 'V2' } })),
          routeTo(named('dead'), 'dead', ending()),
          routeTo(named('low'), 'guarded', ending()),
          routeTo(named('high'), 'guarded', { ...ending(), priority: 'HIGH' }),
          routeTo(named('off'), 'h1', { upgrade_configs: [{ upgrade_type: 'CONNECT', enabled: false }] }),
          ...HOSTS.map((host) => routeTo(named(host), host)),
          routeTo({ prefix: '/post' }, 'tcp', ending({ allow_post: true })),
          routeTo({ prefix: '/' }, 'h1'),
        ],
        ALLOWED,
      ),
    },
    clusters: [
      staticCluster('h1', await startH1(t, requests)),
      staticCluster('h2', await startH2(t, requests), HTTP2_CLUSTER),
      staticCluster('tcp', tcp),
      staticCluster('dead', dead),
      staticCluster('guarded', tcp, { circuit_breakers: { thresholds: [{ max_pending_requests: 0 }] } }),
    ],
  });
  const open = (client: string, authority: string): Promise<Tunnel> =>
    client === 'h1'
      ? openConnection(t, proxy.port, `CONNECT ${authority} HTTP/1.1\r\nhost: ${authority}`)
      : openStream(t, proxy.port, { ':method': 'CONNECT', ':authority': authority });
  for (const client of HOSTS) {
    for (const host of [...HOSTS, 'tcp']) {
      const tunnel = await open(client, `${host}.test:443`);
      t.equal(tunnel.status, 200, `${client} to ${host}`);
      await tunnel.exchange('hello', `${host}:`);
      tunnel.destroy();
      if (host === 'tcp') continue;
      t.match(requests.pop(), { method: 'CONNECT', target: `${host}.test:443` }, `${client} to ${host}`);
    }
    for (const [version, header] of [
      ['v1', /tcp:PROXY TCP4 127\.0\.0\.1 127\.0\.0\.1 \d+ \d+\r\n(tcp:)?hello$/],
      ['v2', /tcp:\r\n\r\n\0\r\nQUIT\n!\x11\0\x0c\x7f\0\0\x01\x7f\0\0\x01[\s\S]{4}(tcp:)?hello$/],
    ] as const) {
      const tunnel = await open(client, `${version}.test:443`);
      await tunnel.exchange('hello', '');
      t.match(tunnel.received(), header, `${client}, ${version}`);
      tunnel.destroy();
    }
    for (const [authority, status] of [
      ['h1.no:443', 403],
      ['h2.no:443', 403],
      ['dead.test:443', 503],
      ['low.test:443', 503],
      ['high.test:443', 200],
      ['off.test:443', 403],
      ['nowhere.test:443', 404],
    ] as const) {
      t.equal((await open(client, authority)).status, status, `${client}, ${authority}`);
    }
  }
  const post = await openConnection(t, proxy.port, 'POST /post HTTP/1.1\r\nhost: a\r\ncontent-length: 5');
  t.equal(post.status, 200);
  await post.exchange('hello', 'tcp:');
  t.match(post.headers, { 'transfer-encoding': 'chunked' });
  await proxy.baton.waitForStats({ 'cluster.tcp.upstream_rq_total': 7, 'cluster.tcp.upstream_cx_total': 7 });
});

/** Returns a port that nothing listens on. */
async function closedPort(): Promise<AddressInfo> {
  const server = createTcp();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return address;
}

t.test('bytes for a tunnel reach no host before it has accepted the tunnel', async (t) => {
  let received = '';
  let answer: (() => void) | undefined;
  const port = await listen(
    t,
    createTcp((socket) => {
      socket.on('data', (bytes: Buffer) => {
        received += bytes.toString('latin1');
        answer ??= () => socket.write('HTTP/1.1 405 No\r\ncontent-length: 0\r\n\r\n');
      });
    }),
  );
  const proxy = await startProxy(t, {
    listeners: { main: managerOf([routeTo(CONNECT, 'host'), routeTo({ prefix: '/' }, 'host')], ALLOWED) },
    clusters: [staticCluster('host', port)],
  });
  for (const headers of [{ ':method': 'CONNECT', ':authority': 'a.test:443' }, extended('/x')]) {
    received = '';
    answer = undefined;
    const session = openSession(t, proxy.port);
    await new Promise((resolve) => session.on('remoteSettings', resolve));
    const stream = session.request(headers, { endStream: false });
    stream.on('error', () => {});
    const responded = new Promise<number>((resolve) =>
      stream.on('response', (found) => resolve(Number(found[':status']))),
    );
    stream.write('GET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n');
    // The ping follows the bytes.
    await new Promise((resolve) => session.ping(resolve));
    await waitFor(() => answer !== undefined, { what: 'the request' });
    answer!();
    t.equal(await responded, 405);
    t.notMatch(received, 'smuggled');
    session.destroy();
  }
});

t.test(
  'a client may end its direction of a tunnel with the head, and nothing is left when the host ends',
  async (t) => {
    const requests: Requested[] = [];
    const tcp = await listen(
      t,
      createTcp({ allowHalfOpen: true }, (socket) => echo(socket, 'tcp:')),
    );
    const proxy = await startProxy(t, {
      listeners: {
        main: managerOf(
          [
            routeTo(named('tcp'), 'tcp', ending()),
            ...HOSTS.map((host) => routeTo(named(host), host)),
            ...HOSTS.map((host) => routeTo({ prefix: `/${host}/` }, host)),
          ],
          ALLOWED,
        ),
      },
      clusters: [
        staticCluster('h1', await startH1(t, requests)),
        staticCluster('h2', await startH2(t, requests), HTTP2_CLUSTER),
        staticCluster('tcp', tcp),
      ],
    });
    const connects = [...HOSTS, 'tcp'].map((host) => ({ ':method': 'CONNECT', ':authority': `${host}.test:443` }));
    for (const headers of [...HOSTS.map((host) => extended(`/${host}/x`)), ...connects]) {
      const tunnel = await openStream(t, proxy.port, headers, true);
      const name = JSON.stringify(headers);
      t.equal(tunnel.status, 200, name);
      t.equal(await tunnel.end(), 'bye', name);
      t.equal(tunnel.code(), 0, name);
    }
    await proxy.baton.waitForStats({
      'cluster.h1.upstream_cx_active': 0,
      'cluster.tcp.upstream_cx_active': 0,
      'cluster.h2.upstream_rq_active': 0,
      'http.main.downstream_rq_active': 0,
      'http.main.downstream_cx_upgrades_active': 0,
    });
  },
);

t.test('a tunnel that ends here counts its flow control once', async (t) => {
  const BYTES = 32 * 1024 * 1024;
  let received = 0;
  const hosts: Socket[] = [];
  const tcp = await listen(
    t,
    createTcp({ pauseOnConnect: true }, (socket) => {
      hosts.push(socket);
      socket.on('data', ({ length }: Buffer) => {
        received += length;
      });
      socket.pause();
    }),
  );
  const proxy = await startProxy(t, {
    listeners: { main: managerOf([routeTo(CONNECT, 'tcp', ending())]) },
    clusters: [staticCluster('tcp', tcp)],
  });
  const client = await connectRaw(t, proxy.port);
  client.write('CONNECT tcp.test:443 HTTP/1.1\r\nhost: tcp.test:443\r\n\r\n');
  await waitFor(() => client.received.includes('\r\n\r\n') && hosts.length === 1, { what: 'the tunnel' });
  client.write('x'.repeat(BYTES));
  const backedUp = 'cluster.tcp.upstream_flow_control_backed_up_total';
  await waitFor(async () => (await proxy.baton.stat(backedUp))! > 0, { what: 'a host that does not read' });
  hosts[0]!.resume();
  await waitFor(() => received === BYTES, { what: 'all bytes' });
  const paused = (await proxy.baton.stat('http.main.downstream_flow_control_paused_reading_total'))!;
  await proxy.baton.waitForStats({ [backedUp]: paused });
});

t.test('an upgrade to h2c and its settings reach no host', async (t) => {
  let headers: IncomingHttpHeaders = {};
  const server = createHttp((request, answer) => {
    headers = request.headers;
    answer.end();
  });
  const proxy = await startProxy(t, {
    listeners: { main: managerOf([routeTo({ prefix: '/' }, 'host')], ALLOWED) },
    clusters: [staticCluster('host', await listen(t, server))],
  });
  const head =
    'GET / HTTP/1.1\r\nhost: a\r\nconnection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk';
  t.equal((await openConnection(t, proxy.port, head)).status, 200);
  t.notOk(headers['upgrade'] ?? headers['http2-settings']);
});

t.test('options that contradict each other are refused', async (t) => {
  const proxy = (action: Config) =>
    startProxy(t, {
      listeners: { main: managerOf([routeTo({ prefix: '/' }, 'host', action)]) },
      clusters: [staticCluster('host', 1, clusterHttpOptions({ explicit_http_config: { http_protocol_options: {} } }))],
    });
  await t.rejects(proxy({ upgrade_configs: [{ upgrade_type: 'websocket', connect_config: {} }] }), {
    message: /Non-CONNECT upgrade type websocket has ConnectConfig/,
  });
});
