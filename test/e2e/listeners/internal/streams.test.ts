// Connections to internal listeners carry any bytes: TLS inside, half-closes, resets, slow readers and loops are handled as on sockets.

import { randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { Authority } from '../../harness/certificates.js';
import { besideEnvoy, type ProxyProgram } from '../../harness/envoy.js';
import {
  type Config,
  connectRaw,
  fileAccessLog,
  httpListener,
  httpRequest,
  startBaton,
  startTcpUpstream,
  staticCluster,
  type Teardown,
  tcpListener,
  tempDir,
  waitFor,
} from '../../harness/index.js';
import { answering, managerOf, routeTo } from '../../http/proxy.js';
import { clientTls, serverTls, trustedCa } from '../../tls/contexts.js';
import { internal, internalBootstrap, internalCluster, internalUpstream } from './config.js';

const MEGABYTE = 1024 * 1024;

interface Started {
  readonly pid: number;
  port(name: string): Promise<number>;
  stats(expected: Record<string, number>): Promise<unknown>;
  stat(name: string): Promise<number | undefined>;
}

async function start(
  t: Teardown,
  program: ProxyProgram,
  listeners: Config[],
  clusters: Config[],
  extension?: Config,
): Promise<Started> {
  const baton = await startBaton(t, {
    ...program,
    args: ['-l', 'error', '--concurrency', '1', '--file-flush-interval-msec', '20'],
    config: internalBootstrap(listeners, clusters, {}, extension),
  });
  return {
    pid: baton.pid,
    port: (name) => baton.listenerPort(name),
    stats: (expected) => baton.waitForStats(expected),
    stat: (name) => baton.stat(name),
  };
}

/** Returns listeners and clusters between the socket `front` and a host: two internal ones. */
function twoHops(host: number): [Config[], Config[]] {
  return [
    [
      tcpListener('front', 0, { cluster: 'first' }),
      internal(tcpListener('first', 0, { cluster: 'second' })),
      internal(tcpListener('second', 0, { cluster: 'host' })),
    ],
    [internalCluster('first', 'first'), internalCluster('second', 'second'), staticCluster('host', host)],
  ];
}

besideEnvoy('bytes in both directions arrive whole, and each direction ends on its own', async (t, program) => {
  const host = await startTcpUpstream(t, (socket) => {
    socket.on('end', () => socket.end('the end'));
    socket.pipe(socket, { end: false });
  });
  const proxy = await start(t, program, ...twoHops(host.port));
  const client = await connectRaw(t, await proxy.port('front'));
  const sent = randomBytes(4 * MEGABYTE);
  client.write(sent);
  client.end();
  const { closed, text } = await client.readToEnd();
  t.equal(closed, 'end');
  t.ok(Buffer.concat([sent, Buffer.from('the end')]).equals(Buffer.from(text, 'latin1')));
  await proxy.stats({ 'cluster.first.upstream_cx_active': 0, 'cluster.second.upstream_cx_active': 0 });
});

besideEnvoy('a reset of the host reaches the client as a reset', async (t, program) => {
  const host = await startTcpUpstream(t, (socket) => {
    socket.write('begun');
    socket.once('data', () => socket.resetAndDestroy());
  });
  const proxy = await start(t, program, ...twoHops(host.port));
  const client = await connectRaw(t, await proxy.port('front'));
  await client.readUntil('begun');
  client.write('more');
  t.equal((await client.readToEnd()).closed, 'reset');
});

besideEnvoy('a client that resets its connection leaves none open', async (t, program) => {
  const host = await startTcpUpstream(t, (socket) => void socket.on('error', () => {}).write('begun'));
  const proxy = await start(t, program, ...twoHops(host.port));
  const client = await connectRaw(t, await proxy.port('front'));
  await client.readUntil('begun');
  client.reset();
  await proxy.stats({
    'cluster.first.upstream_cx_active': 0,
    'cluster.host.upstream_cx_active': 0,
    'listener.envoy_internal_first.downstream_cx_active': 0,
    'listener.envoy_internal_second.downstream_cx_active': 0,
  });
});

besideEnvoy('TLS is spoken inside a connection to an internal listener', async (t, program) => {
  const authority = await Authority.create();
  const certificate = await authority.issue({ names: [{ type: 'dns', value: 'inside.test' }] });
  const log = join(tempDir(t), 'log');
  const secure = internal(
    httpListener(
      'secure',
      0,
      managerOf([answering({ prefix: '/' }, 'secret')], {
        access_log: [
          fileAccessLog(log, '%DOWNSTREAM_TLS_VERSION% %REQUESTED_SERVER_NAME% %DOWNSTREAM_LOCAL_ADDRESS%\n'),
        ],
      }),
    ),
  );
  const [chain] = secure['filter_chains'] as Config[];
  const tls = clientTls({ validation_context: trustedCa(authority) }, { sni: 'inside.test' });
  const proxy = await start(
    t,
    program,
    [
      httpListener(
        'front',
        0,
        managerOf([routeTo({ prefix: '/wrapped' }, 'wrapped'), routeTo({ prefix: '/' }, 'bare')]),
      ),
      { ...secure, filter_chains: [{ ...chain, transport_socket: serverTls([certificate]) }] },
    ],
    [
      internalCluster('wrapped', 'secure', undefined, { transport_socket: internalUpstream([], tls) }),
      internalCluster('bare', 'secure', undefined, { transport_socket: tls }),
    ],
  );
  const port = await proxy.port('front');
  t.match(await httpRequest(port, '/wrapped'), { status: 200, body: 'secret' });
  t.match(await httpRequest(port, '/bare'), { status: 200, body: 'secret' });
  await proxy.stats({ 'cluster.wrapped.ssl.handshake': 1, 'listener.envoy_internal_secure.ssl.handshake': 2 });
});

for (const kilobytes of [1, 1024]) {
  t.test(`a client that does not read stops the host, with a buffer of ${kilobytes} KiB`, async (t) => {
    let written = 0;
    const block = Buffer.alloc(64 * 1024, 'x');
    const host = await startTcpUpstream(t, (socket) => {
      const write = () => {
        while (socket.write(block)) written += block.length;
        written += block.length;
      };
      socket.on('drain', write).on('error', () => {});
      write();
    });
    const proxy = await start(t, { command: undefined }, ...twoHops(host.port), { buffer_size_kb: kilobytes });
    const client = await connectRaw(t, await proxy.port('front'));
    client.socket.pause();
    await waitFor(
      async () => ((await proxy.stat('cluster.host.upstream_flow_control_paused_reading_total')) ?? 0) > 0,
      {
        what: 'back pressure',
      },
    );
    let before = -1;
    let unchanged = 0;
    await waitFor(
      async () => {
        await proxy.stat('cluster.host.upstream_cx_active');
        unchanged = before === written ? unchanged + 1 : 0;
        before = written;
        return unchanged === 10;
      },
      { what: 'a host that is stopped' },
    );
    t.ok(written < 24 * MEGABYTE, `the host has sent ${written} bytes`);
    client.discard();
    const reached = written;
    await waitFor(() => written > reached + 8 * MEGABYTE, { what: 'more bytes' });
    client.reset();
    await proxy.stats({ 'cluster.first.upstream_cx_active': 0, 'cluster.host.upstream_cx_active': 0 });
  });
}

t.test(
  'a loop of internal listeners ends at the circuit breaker or a timeout, and frees its connections',
  async (t) => {
    const openFiles = (pid: number) => readdirSync(`/proc/${pid}/fd`).length;
    const proxy = await start(
      t,
      { command: undefined },
      [
        httpListener(
          'front',
          0,
          managerOf([routeTo({ prefix: '/tcp' }, 'tcp'), routeTo({ prefix: '/' }, 'http', { timeout: '1s' })]),
        ),
        internal(tcpListener('tcp', 0, { cluster: 'tcp' })),
        internal(httpListener('http', 0, managerOf([routeTo({ prefix: '/' }, 'http')]))),
      ],
      [internalCluster('tcp', 'tcp'), internalCluster('http', 'http')],
    );
    const port = await proxy.port('front');
    const before = openFiles(proxy.pid);
    t.match(await httpRequest(port, '/tcp'), { status: 503 });
    await proxy.stats({ 'cluster.tcp.upstream_cx_active': 0, 'cluster.tcp.upstream_cx_overflow': 1 });
    // As in Envoy, the request that finds no connection free is queued.
    t.match(await httpRequest(port, '/http'), { status: 504 });
    await proxy.stats({ 'cluster.http.upstream_rq_active': 0 });
    // One may be idle, which was connecting when its request ended.
    await waitFor(async () => (await proxy.stat('listener.envoy_internal_http.downstream_cx_active'))! <= 1);
    t.ok(openFiles(proxy.pid) < before + 100);
  },
);
