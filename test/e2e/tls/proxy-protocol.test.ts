// The PROXY protocol to hosts (envoy.transport_sockets.upstream_proxy_protocol): over plain connections and before TLS.

import { createServer, type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import t, { type Test } from 'tap';
import { Authority } from '../harness/certificates.js';
import { besideEnvoy } from '../harness/envoy.js';
import {
  bootstrap,
  type Config,
  connectRaw,
  httpListener,
  type RawConnection,
  startBaton,
  staticCluster,
  tcpListener,
  waitFor,
} from '../harness/index.js';
import { managerOf, routeTo } from '../http/proxy.js';
import { internalUpstream } from '../listeners/internal/config.js';
import { clientTls, trustedCa } from './contexts.js';

const TYPES = 'type.googleapis.com/envoy.extensions.transport_sockets';
const RAW = { name: 'raw', typed_config: { '@type': `${TYPES}.raw_buffer.v3.RawBuffer` } };
const TLVS = [
  { type: 0xe1, value: Buffer.from('zone').toString('base64') },
  { type: 0xe1, value: Buffer.from('more').toString('base64') },
];
const ENCODED_TLVS = 'e100047a6f6e65e100046d6f7265';

const root = await Authority.create();
const secure = await root.issue({ names: ['server.test'] });

function proxied(config: Config, transport_socket: Config = RAW): Config {
  const typed_config = {
    '@type': `${TYPES}.proxy_protocol.v3.ProxyProtocolUpstreamTransport`,
    config,
    transport_socket,
  };
  return { transport_socket: { name: 'proxied', typed_config } };
}

interface Received {
  /** All bytes before TLS. */
  readonly opening: Buffer;
  /** The address of the connection's other end. */
  readonly port: number;
}

/** Starts a host that answers every request. It may speak TLS after `headerBytes`. */
async function startHost(t: Test, headerBytes?: number): Promise<{ port: number; received: Received[] }> {
  const received: { opening: Buffer; port: number }[] = [];
  const sockets = new Set<Socket>();
  const answer = (socket: Socket, seen: () => string) => {
    socket.on('error', () => {});
    socket.on('data', () => {
      if (seen().includes('\r\n\r\n')) socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
    });
  };
  const server = createServer((socket) => {
    sockets.add(socket);
    const entry: (typeof received)[number] = { opening: Buffer.alloc(0), port: socket.remotePort! };
    received.push(entry);
    socket.on('error', () => {});
    if (headerBytes === undefined) {
      socket.on('data', (bytes: Buffer) => {
        entry.opening = Buffer.concat([entry.opening, bytes]);
      });
      answer(socket, () => entry.opening.toString('latin1'));
      return;
    }
    socket.once('readable', () => {
      entry.opening = socket.read(headerBytes) as Buffer;
      const tls = new TLSSocket(socket, { isServer: true, cert: secure.chain, key: secure.key });
      let text = '';
      tls.on('data', (bytes: Buffer) => {
        text += bytes.toString('latin1');
      });
      answer(tls, () => text);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port: (server.address() as { port: number }).port, received };
}

function v2(from: number, to: number, tlvs = ''): string {
  const ports = Buffer.alloc(4);
  ports.writeUInt16BE(from, 0);
  ports.writeUInt16BE(to, 2);
  const rest = `7f0000017f000001${ports.toString('hex')}${tlvs}`;
  return `0d0a0d0a000d0a515549540a2111${(rest.length / 2).toString(16).padStart(4, '0')}${rest}`;
}

const LOCAL = '0d0a0d0a000d0a515549540a20000000';

async function request(client: RawConnection): Promise<void> {
  client.write('GET / HTTP/1.1\r\nhost: server.test\r\n\r\n');
  await client.readUntil('\r\n\r\nok');
}

function toCluster(name: string, cluster: string) {
  return httpListener(name, 0, managerOf([routeTo({ prefix: '/' }, cluster)], { codec_type: 'HTTP1' }));
}

besideEnvoy('each client has connections of its own, which begin with its addresses', async (t, program) => {
  const host = await startHost(t);
  const baton = await startBaton(t, {
    ...program,
    args: ['--concurrency', '1', '-l', 'warning'],
    config: bootstrap({
      listeners: [toCluster('text', 'text'), toCluster('binary', 'binary')],
      clusters: [
        staticCluster('text', host.port, proxied({ version: 'V1' })),
        staticCluster('binary', host.port, proxied({ version: 'V2', added_tlvs: TLVS })),
      ],
    }),
  });
  for (const name of ['text', 'binary']) {
    const port = await baton.listenerPort(name);
    const clients = [await connectRaw(t, port), await connectRaw(t, port)];
    for (const client of [...clients, ...clients]) await request(client);
    t.equal(host.received.length, 2, `${name}: one connection a client`);
    for (const [index, client] of clients.entries()) {
      const { opening } = host.received[index]!;
      const expected =
        name === 'text'
          ? Buffer.from(`PROXY TCP4 127.0.0.1 127.0.0.1 ${client.socket.localPort!} ${port}\r\n`)
          : Buffer.from(v2(client.socket.localPort!, port, ENCODED_TLVS), 'hex');
      t.equal(opening.subarray(0, expected.length).toString('hex'), expected.toString('hex'));
      t.equal(opening.subarray(expected.length, expected.length + 5).toString(), 'GET /', 'the request follows');
    }
    await baton.waitForStats({
      [`cluster.${name}.upstream_cx_total`]: 2,
      [`cluster.${name}.upstream_rq_total`]: 4,
      [`cluster.${name}.upstream.proxyprotocol.v2_tlvs_exceed_max_length`]: 0,
    });
    host.received.length = 0;
  }
});

besideEnvoy('TLS follows the header', async (t, program) => {
  const header = v2(0, 0, ENCODED_TLVS).length / 2;
  const host = await startHost(t, header);
  const tls = clientTls({ validation_context: trustedCa(root) }, { sni: 'server.test' });
  const baton = await startBaton(t, {
    ...program,
    config: bootstrap({
      listeners: [toCluster('main', 'host')],
      clusters: [staticCluster('host', host.port, proxied({ version: 'V2', added_tlvs: TLVS }, tls))],
    }),
  });
  const port = await baton.listenerPort('main');
  const client = await connectRaw(t, port);
  await request(client);
  t.equal(host.received[0]!.opening.toString('hex'), v2(client.socket.localPort!, port, ENCODED_TLVS));
  await baton.waitForStats({ 'cluster.host.ssl.handshake': 1 });
});

besideEnvoy('a TCP proxy sends the header at once, and counts it', async (t, program) => {
  const host = await startHost(t);
  const baton = await startBaton(t, {
    ...program,
    config: bootstrap({
      listeners: [tcpListener('tcp', 0, { cluster: 'host' })],
      clusters: [staticCluster('host', host.port, proxied({ version: 'V2' }))],
    }),
  });
  const port = await baton.listenerPort('tcp');
  const client = await connectRaw(t, port);
  await waitFor(() => host.received[0]?.opening.length === 28, { what: 'the header before any data' });
  t.equal(host.received[0]!.opening.toString('hex'), v2(client.socket.localPort!, port));
  client.write('data');
  await waitFor(() => host.received[0]?.opening.length === 32, { what: 'the data' });
  await baton.waitForStats({ 'cluster.host.upstream_cx_tx_bytes_total': 32 });
});

besideEnvoy('health checks have no client: the header names the connection itself, or nothing', async (t, program) => {
  for (const version of ['V1', 'V2']) {
    const host = await startHost(t);
    const check = { timeout: '5s', interval: '60s', unhealthy_threshold: 1, healthy_threshold: 1 };
    const health_checks = [{ ...check, http_health_check: { path: '/check' } }];
    const tlvs = version === 'V1' ? {} : { added_tlvs: TLVS };
    const baton = await startBaton(t, {
      ...program,
      config: bootstrap({
        listeners: [],
        clusters: [staticCluster('host', host.port, { ...proxied({ version, ...tlvs }), health_checks })],
      }),
    });
    await baton.waitForStats({ 'cluster.host.health_check.success': 1 });
    const { opening, port } = host.received[0]!;
    const expected =
      version === 'V1'
        ? Buffer.from(`PROXY TCP4 127.0.0.1 127.0.0.1 ${port} ${host.port}\r\n`)
        : Buffer.from(LOCAL, 'hex');
    t.equal(opening.subarray(0, expected.length).toString('hex'), expected.toString('hex'), version);
    t.equal(opening.subarray(expected.length, expected.length + 10).toString(), 'GET /check');
  }
});

t.test('other headers and passed values within a header are refused: they would have no effect', async (t) => {
  const tls = clientTls({ validation_context: trustedCa(root) });
  const { transport_socket } = proxied({ version: 'V2' }, tls) as { transport_socket: Config };
  const clusters = [transport_socket, internalUpstream()].map((inner, index) =>
    staticCluster(`${index}`, 1, proxied({ version: 'V1' }, inner)),
  );
  const baton = await startBaton(t, { wait: 'spawned', config: bootstrap({ listeners: [], clusters }) });
  t.not((await baton.exited).code, 0);
  for (const index of [0, 1])
    t.match(baton.stderr, new RegExp(`clusters\\[${index}\\].*transport_socket: the header comes before TLS`));
});
