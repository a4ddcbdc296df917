// tunneling_config: the bytes of a client travel in a CONNECT or POST request through the host, and hosts that refuse, break or abuse the
// tunnel end only the client's connection. The expected results are those of Envoy 1.40.

import { createServer as createHttp2, createSecureServer, type ServerHttp2Stream } from 'node:http2';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { Authority } from '../harness/certificates.js';
import { besideEnvoy, type ProxyProgram } from '../harness/envoy.js';
import {
  bootstrap,
  type Config,
  fileAccessLog,
  HTTP2_CLUSTER,
  loopback,
  startBaton,
  staticCluster,
  type Teardown,
  tcpListener,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { logLines } from '../harness/log-lines.js';
import { startRateLimitService } from '../http/extensions/ratelimit-service.js';
import { openStream, type Stream } from './stream.js';

const ACCEPTED = 'HTTP/1.1 200 OK\r\n\r\n';
const LOG = [
  '%RESPONSE_FLAGS%',
  '%UPSTREAM_REQUEST_ATTEMPT_COUNT%',
  '%UPSTREAM_TRANSPORT_FAILURE_REASON%',
  '%BYTES_RECEIVED%',
  '%BYTES_SENT%',
  '%ACCESS_LOG_TYPE%',
].join(' ');
const TUNNEL = { hostname: 'target.example:443' };

interface Peer {
  readonly port: number;
  /** What the proxies have sent, by connection. */
  readonly received: string[];
  readonly sockets: Socket[];
}

/** A proxy that sends `answer` to each request head. */
async function startAnswering(t: Teardown, answer: string, after?: (socket: Socket) => void): Promise<Peer> {
  const received: string[] = [];
  const sockets: Socket[] = [];
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    const at = received.push('') - 1;
    let hasAnswered = false;
    sockets.push(socket);
    socket.on('error', () => {});
    socket.on('end', () => socket.end());
    socket.on('data', (chunk: Buffer) => {
      received[at] += chunk.toString('latin1');
      if (hasAnswered || !received[at]!.includes('\r\n\r\n')) return;
      hasAnswered = true;
      if (answer !== '') socket.write(answer, 'latin1');
      after?.(socket);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return { port: (server.address() as { port: number }).port, received, sockets };
}

interface Tunnel {
  client: Stream;
  /** Returns the first `count` lines of the access log. */
  lines(count: number): Promise<string[]>;
  stat(name: string): Promise<number | undefined>;
  /** Opens another connection of a client. */
  open(): Promise<Stream>;
}

interface TunnelOptions {
  readonly cluster?: Config;
  readonly format?: string;
  readonly proxy?: Config;
  readonly tunnel?: Config;
}

/** Starts a proxy with tunneling_config and the connection of a client. */
async function openTunnel(
  t: Test,
  program: ProxyProgram,
  port: number,
  { cluster = {}, format = LOG, proxy = {}, tunnel = TUNNEL }: TunnelOptions = {},
): Promise<Tunnel> {
  const log = join(tempDir(t), 'log');
  const baton = await startBaton(t, {
    ...program,
    config: bootstrap({
      listeners: [
        tcpListener('tunnel', 0, {
          cluster: 'proxy',
          tunneling_config: tunnel,
          access_log: [fileAccessLog(log, `${format}\n`)],
          ...proxy,
        }),
      ],
      clusters: [staticCluster('proxy', port, cluster)],
    }),
    args: ['--file-flush-interval-msec', '50'],
  });
  const listener = await baton.listenerPort('tunnel');
  return {
    client: await openStream(t, listener),
    open: () => openStream(t, listener),
    stat: (name) => baton.stat(name),
    lines: (count) =>
      waitFor(() => (logLines(log).length >= count ? logLines(log).slice(0, count) : undefined), {
        what: `${count} log lines`,
      }),
  };
}

besideEnvoy('bytes follow an accepted CONNECT, and wait for it', async (t, program) => {
  const proxy = await startAnswering(t, '');
  const { client, lines } = await openTunnel(t, program, proxy.port);
  await client.write('early');
  await waitFor(() => proxy.received[0]?.endsWith('\r\n\r\n') === true, { what: 'the request' });
  t.equal(proxy.received[0], 'CONNECT target.example:443 HTTP/1.1\r\nhost: target.example:443\r\n\r\n');
  // Fields that frame a body mean nothing here (RFC 9110, section 9.3.6).
  proxy.sockets[0]!.write('HTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\nhello');
  await client.receives(5);
  await waitFor(() => proxy.received[0]!.endsWith('\r\n\r\nearly'), { what: 'the bytes of the client' });
  client.end();
  t.equal(await client.isClosed(), 'end');
  t.same(await lines(1), ['- 1 - 5 5 TcpConnectionEnd']);
});

besideEnvoy('a refused CONNECT is repeated, and then closes the client', async (t, program) => {
  const proxy = await startAnswering(t, 'HTTP/1.1 403 No\r\nx-reason: a\r\ncontent-length: 2\r\n\r\nno');
  const { client, lines, stat } = await openTunnel(t, program, proxy.port, {
    proxy: { max_connect_attempts: 3, backoff_options: { base_interval: '0.02s' } },
    tunnel: { ...TUNNEL, propagate_response_headers: true },
    format: `${LOG} %FILTER_STATE(envoy.tcp_proxy.propagate_response_headers)%`,
  });
  await client.isClosed();
  t.equal(client.length, 0, 'the client gets nothing of the answer');
  const headers =
    '{"headers":[{"key":":status","value":"403"},{"key":"x-reason","value":"a"},{"key":"content-length","value":"2"}]}';
  t.same(await lines(1), [`UF,URX 3 tunnel_response:403 0 0 TcpConnectionEnd ${headers}`]);
  t.equal(proxy.received.length, 3);
  t.equal(await stat('cluster.proxy.upstream_cx_connect_attempts_exceeded'), 1);
  t.equal(await stat('cluster.proxy.upstream_rq_total'), 3);
});

for (const [what, answer] of [
  ['closes the connection', undefined],
  ['switches protocols', 'HTTP/1.1 101 Switching\r\n\r\n'],
  ['sends no HTTP', 'SSH-2.0-x\r\n'],
  ['sends a head without end', `HTTP/1.1 200 OK\r\nx: ${'a'.repeat(200_000)}`],
  ['sends many fields', `HTTP/1.1 200 OK\r\n${'x: a\r\n'.repeat(5000)}\r\n`],
  ['sends an interim head with a bad field', 'HTTP/1.1 103 Hints\r\nx\0: 1\r\n\r\nHTTP/1.1 200 OK\r\n\r\n'],
] as const) {
  besideEnvoy(`a host that ${what} in place of an answer ends the client's connection`, async (t, program) => {
    const proxy = await startAnswering(t, answer ?? '', (socket) => answer === undefined && socket.end());
    const { client, lines } = await openTunnel(t, program, proxy.port);
    void client.write('x').catch(() => {});
    await client.isClosed();
    t.equal(client.length, 0);
    t.match(await lines(1), [/^UF,URX 1 /]);
  });
}

besideEnvoy('informational responses precede the answer', async (t, program) => {
  const proxy = await startAnswering(
    t,
    `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nx: y\r\n\r\n${ACCEPTED}hello`,
  );
  const { client } = await openTunnel(t, program, proxy.port);
  await client.receives(5);
  t.equal(client.head, 'hello');
});

t.test('a host that sends informational responses without end is refused', async (t) => {
  const proxy = await startAnswering(t, `${'HTTP/1.1 103 Hints\r\n\r\n'.repeat(200)}${ACCEPTED}hello`);
  const { client, lines } = await openTunnel(t, { command: undefined }, proxy.port);
  await client.isClosed();
  t.equal(client.length, 0);
  t.same(await lines(1), ['UF,URX 1 tunnel_response:1xx 0 0 TcpConnectionEnd']);
});

t.test('a client that leaves while its tunnel is requested leaves no connection', async (t) => {
  const proxy = await startAnswering(t, '');
  const { client, stat } = await openTunnel(t, { command: undefined }, proxy.port);
  await waitFor(() => proxy.received[0]?.endsWith('\r\n\r\n') === true, { what: 'the request' });
  client.reset();
  await waitFor(async () => (await stat('cluster.proxy.upstream_cx_active')) === 0, { what: 'the end of the tunnel' });
  t.equal(await stat('cluster.proxy.upstream_rq_active'), 0);
});

besideEnvoy('over HTTP/1.1 the first direction that ends closes the tunnel', async (t, program) => {
  const proxy = await startAnswering(t, `${ACCEPTED}all`, (socket) => socket.end());
  const { client, lines } = await openTunnel(t, program, proxy.port);
  await client.receives(3);
  await client.isClosed();
  t.match(await lines(1), [/^- 1 - 0 3 TcpConnectionEnd$/]);
});

besideEnvoy('an idle tunnel is closed, one without an answer is not', async (t, program) => {
  const proxy = await startAnswering(t, ACCEPTED);
  const { client, stat } = await openTunnel(t, program, proxy.port, { proxy: { idle_timeout: '0.2s' } });
  t.equal(await client.isClosed(), 'end');
  t.equal(await stat('tcp.tunnel.idle_timeout'), 1);
});

besideEnvoy('hostname, added headers and the request ID are made for each connection', async (t, program) => {
  const proxy = await startAnswering(t, ACCEPTED);
  const extension = { '@type': 'type.googleapis.com/envoy.extensions.request_id.uuid.v3.UuidRequestIdConfig' };
  const { client, lines } = await openTunnel(t, program, proxy.port, {
    tunnel: {
      hostname: '%DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT%:1',
      headers_to_add: [{ header: { key: 'x-client', value: '%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%' } }],
      request_id_extension: { typed_config: extension },
      request_id_header: 'x-id',
      request_id_metadata_key: 'id',
    },
    format: '%DYNAMIC_METADATA(envoy.filters.network.tcp_proxy:id)%',
  });
  const request = await waitFor(() => proxy.received.find((text) => text.includes('\r\n\r\n')), {
    what: 'the request',
  });
  client.end();
  const [id] = await lines(1);
  t.match(id, /^[0-9a-f-]{36}$/);
  const lines1 = ['CONNECT 127.0.0.1:1 HTTP/1.1', 'host: 127.0.0.1:1', `x-id: ${id}`, 'x-client: 127.0.0.1', '', ''];
  t.equal(request, lines1.join('\r\n'));
});

besideEnvoy('records are written at the start, when the tunnel is open, and at the end', async (t, program) => {
  const proxy = await startAnswering(t, ACCEPTED);
  const { client, lines } = await openTunnel(t, program, proxy.port, {
    proxy: { access_log_options: { flush_access_log_on_start: true, flush_access_log_on_connected: true } },
  });
  t.same(await lines(2), ['- 0 - 0 0 TcpConnectionStart', '- 1 - 0 0 TcpUpstreamConnected']);
  client.end();
  t.equal((await lines(3))[2], '- 1 - 0 0 TcpConnectionEnd');
});

besideEnvoy('records are written regularly while the connection lasts', async (t, program) => {
  const proxy = await startAnswering(t, ACCEPTED);
  const { lines } = await openTunnel(t, program, proxy.port, {
    proxy: { access_log_options: { access_log_flush_interval: '0.1s' } },
  });
  t.same(await lines(2), ['- 1 - 0 0 TcpPeriodic', '- 1 - 0 0 TcpPeriodic']);
});

besideEnvoy('a POST carries both directions as bodies', async (t, program) => {
  const proxy = await startAnswering(t, 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n');
  const { client } = await openTunnel(t, program, proxy.port, {
    tunnel: { ...TUNNEL, use_post: true, post_path: '/tunnel' },
  });
  await client.receives(5);
  t.equal(client.head, 'hello');
  void client.write('abc');
  const head = 'POST /tunnel HTTP/1.1\r\nhost: target.example:443\r\ntransfer-encoding: chunked\r\n\r\n';
  await waitFor(() => proxy.received[0] === `${head}3\r\nabc\r\n`, { what: 'the chunk' });
});

besideEnvoy('the end of the client completes the body of a POST', async (t, program) => {
  const proxy = await startAnswering(t, 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n');
  const { client } = await openTunnel(t, program, proxy.port, { tunnel: { ...TUNNEL, use_post: true } });
  await client.write('abc');
  await waitFor(() => proxy.received[0]!.endsWith('3\r\nabc\r\n'), { what: 'the chunk' });
  client.end();
  t.equal(await client.isClosed(), 'end');
  await waitFor(() => proxy.sockets[0]!.readableEnded, { what: 'the end of the connection' });
  t.ok(proxy.received[0]!.endsWith('3\r\nabc\r\n0\r\n\r\n'), JSON.stringify(proxy.received[0]));
});

besideEnvoy('a host gets all bytes of a client that has ended, however late it reads them', async (t, program) => {
  const proxy = await startAnswering(t, ACCEPTED, (socket) => socket.pause());
  const { client } = await openTunnel(t, program, proxy.port);
  // More than the kernel takes, and less than a send queue.
  const size = 6 * 1024 * 1024;
  await waitFor(() => proxy.received[0]?.endsWith('\r\n\r\n') === true, { what: 'the request' });
  const head = proxy.received[0]!.length;
  void client.write(Buffer.alloc(size, 'a')).catch(() => {});
  client.end();
  // Longer than the rest of an exchange without a tunnel may take.
  const begin = performance.now();
  await waitFor(() => performance.now() - begin > 1500, { what: 'the time' });
  proxy.sockets[0]!.resume();
  await waitFor(() => proxy.sockets[0]!.readableEnded || proxy.sockets[0]!.destroyed, { what: 'the end of the bytes' });
  t.equal(proxy.received[0]!.length - head, size);
});

t.test('bytes and the end of a client that network filters have held follow the accepted CONNECT', async (t) => {
  let open = () => {};
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  const service = await startRateLimitService(t, {}, gate);
  const port = await startHttp2(t, echo);
  const network = 'type.googleapis.com/envoy.extensions.filters.network';
  const filter = (message: string, config: Config) => ({
    name: message,
    typed_config: { '@type': `${network}.${message}`, stat_prefix: 'a', ...config },
  });
  const baton = await startBaton(t, {
    config: bootstrap({
      listeners: [
        {
          name: 'tunnel',
          address: loopback(0),
          filter_chains: [
            {
              filters: [
                filter('ratelimit.v3.RateLimit', {
                  domain: 'a',
                  timeout: '30s',
                  descriptors: [{ entries: [{ key: 'a', value: 'b' }] }],
                  rate_limit_service: {
                    transport_api_version: 'V3',
                    grpc_service: { envoy_grpc: { cluster_name: 'limits' } },
                  },
                }),
                filter('connection_limit.v3.ConnectionLimit', { max_connections: 10 }),
                filter('tcp_proxy.v3.TcpProxy', { cluster: 'proxy', tunneling_config: TUNNEL }),
              ],
            },
          ],
        },
      ],
      clusters: [staticCluster('proxy', port, HTTP2_CLUSTER), staticCluster('limits', service.port, HTTP2_CLUSTER)],
    }),
  });
  const client = await openStream(t, await baton.listenerPort('tunnel'));
  await client.write('early');
  client.end();
  await baton.waitForStats({ 'ratelimit.a.active': 1 });
  open();
  t.equal(await client.isClosed(), 'end');
  t.equal(client.head, 'earlybye');
});

// ── HTTP/2 ───────────────────────────────────────────────────────────────────────────────────────────────────────────

type OnStream = (stream: ServerHttp2Stream, headers: Record<string, unknown>) => void;

async function startHttp2(t: Teardown, onStream: OnStream, tls?: { key: string; cert: string }): Promise<number> {
  const server = tls === undefined ? createHttp2() : createSecureServer(tls);
  server.on('session', (session) => {
    session.on('error', () => {});
    t.teardown(() => session.destroy());
  });
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {});
    onStream(stream, headers);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  return (server.address() as { port: number }).port;
}

/** Answers 200 with the bytes of the request and, after its end, with `bye`. */
const echo: OnStream = (stream) => {
  stream.respond({ ':status': 200 });
  stream.on('data', (chunk: Buffer) => stream.write(chunk));
  stream.on('end', () => stream.end('bye'));
};

besideEnvoy('tunnels over HTTP/2 share a connection, and their directions end one by one', async (t, program) => {
  const requests: Record<string, unknown>[] = [];
  const port = await startHttp2(t, (stream, headers) => {
    requests.push({ ...headers });
    echo(stream, headers);
  });
  const { client, lines, open, stat } = await openTunnel(t, program, port, { cluster: HTTP2_CLUSTER });
  void client.write('one');
  await client.receives(3);
  const other = await open();
  void other.write('two');
  await other.receives(3);
  client.end();
  await client.receives(6);
  t.equal(client.head, 'onebye');
  t.equal(await client.isClosed(), 'end');
  t.same(await lines(1), ['- 1 - 3 6 TcpConnectionEnd']);
  t.match(requests[0], { ':method': 'CONNECT', ':authority': 'target.example:443' });
  t.equal(await stat('cluster.proxy.upstream_cx_total'), 1);
  t.notOk(':path' in requests[0]!);
  t.equal(other.closed, 'open');
});

besideEnvoy('a host may end its direction first, with trailers', async (t, program) => {
  const port = await startHttp2(t, (stream) => {
    stream.respond({ ':status': 200 }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'x-sum': '1' }));
    stream.end('all');
  });
  const { client, lines } = await openTunnel(t, program, port, {
    cluster: HTTP2_CLUSTER,
    tunnel: { ...TUNNEL, propagate_response_trailers: true },
    format: '%FILTER_STATE(envoy.tcp_proxy.propagate_response_trailers)%',
  });
  await client.receives(3);
  t.equal(await client.isClosed(), 'end');
  client.end();
  t.same(await lines(1), ['{"headers":[{"key":"x-sum","value":"1"}]}']);
});

for (const [what, onStream, reason] of [
  ['another status than 200', (stream) => stream.respond({ ':status': 201 }), 'tunnel_response:201'],
  ['only a head', (stream) => stream.respond({ ':status': 200 }, { endStream: true }), 'tunnel_response:200'],
  ['a refusal', (stream) => stream.close(7), '-'],
  ['a reset', (stream) => stream.close(2), '-'],
  ['the end of the connection', (stream) => stream.session!.destroy(), '-'],
] as readonly (readonly [string, OnStream, string])[]) {
  besideEnvoy(`${what} over HTTP/2 ends the client's connection`, async (t, program) => {
    const port = await startHttp2(t, onStream);
    const { client, lines } = await openTunnel(t, program, port, { cluster: HTTP2_CLUSTER });
    await client.isClosed();
    t.same(await lines(1), [`UF,URX 1 ${reason} 0 0 TcpConnectionEnd`]);
  });
}

besideEnvoy('a reset of an open tunnel closes the client in order', async (t, program) => {
  const port = await startHttp2(t, (stream) => {
    stream.respond({ ':status': 200 });
    stream.write('part');
    stream.on('data', () => stream.close(8));
  });
  const { client, lines } = await openTunnel(t, program, port, { cluster: HTTP2_CLUSTER });
  await client.receives(4);
  void client.write('x');
  t.equal(await client.isClosed(), 'end');
  t.same(await lines(1), ['- 1 - 1 4 TcpConnectionEnd']);
});

besideEnvoy('a POST over HTTP/2 goes on when its response has ended', async (t, program) => {
  let received = '';
  const port = await startHttp2(t, (stream) => {
    stream.respond({ ':status': 200 });
    stream.end('all');
    stream.on('data', (chunk: Buffer) => {
      received += chunk.toString();
    });
  });
  const { client } = await openTunnel(t, program, port, {
    cluster: HTTP2_CLUSTER,
    tunnel: { ...TUNNEL, use_post: true },
  });
  t.equal(await client.isClosed(), 'end');
  void client.write('more');
  await waitFor(() => received === 'more', { what: 'bytes after the end of the response' });
});

besideEnvoy('the connection to the host may be TLS', async (t, program) => {
  const authority = await Authority.create();
  const { key, certificate } = await authority.issue({ names: [{ type: 'dns', value: 'proxy.example' }] });
  const port = await startHttp2(t, echo, { key, cert: certificate });
  const { client } = await openTunnel(t, program, port, {
    cluster: {
      ...HTTP2_CLUSTER,
      transport_socket: {
        name: 'envoy.transport_sockets.tls',
        typed_config: {
          '@type': 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext',
          sni: 'proxy.example',
        },
      },
    },
  });
  void client.write('secret');
  await client.receives(6);
  t.equal(client.head, 'secret');
});

besideEnvoy(
  'a client that does not read stops the host, and a host that does not read stops the client',
  async (t, program) => {
    let sent = 0;
    const piece = Buffer.alloc(64 * 1024);
    const port = await startHttp2(t, (stream) => {
      stream.respond({ ':status': 200 });
      stream.pause();
      const write = () => {
        while (!stream.destroyed) {
          sent += piece.length;
          if (!stream.write(piece)) {
            stream.once('drain', write);
            return;
          }
        }
      };
      write();
    });
    const { client } = await openTunnel(t, program, port, { cluster: HTTP2_CLUSTER });
    client.socket.pause();
    let written = 0;
    const fill = () => {
      while (written < 256 * 1024 * 1024) {
        written += piece.length;
        if (!client.socket.write(piece)) {
          client.socket.once('drain', fill);
          return;
        }
      }
    };
    fill();
    let before = -1;
    let unchanged = 0;
    await waitFor(
      () => {
        unchanged = sent + written === before ? unchanged + 1 : 0;
        before = sent + written;
        return unchanged === 40;
      },
      { what: 'the end of sending' },
    );
    t.ok(sent < 64 * 1024 * 1024, `the host has sent ${sent} bytes`);
    t.ok(written < 64 * 1024 * 1024, `the client has sent ${written} bytes`);
  },
);
