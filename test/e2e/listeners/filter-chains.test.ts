// One listener with several filter chains: the addresses of both ends of a connection select the chain.

import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import t, { type Test } from 'tap';
import {
  bootstrap,
  type Config,
  httpListener,
  RawConnection,
  startBaton,
  startTcpUpstream,
  staticCluster,
  type Teardown,
  tcpListener,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { answering, managerOf } from '../http/proxy.js';

const upstream = await startTcpUpstream(t, (socket) => void socket.end('bytes'));
const sourcePort = await freePort('127.0.0.5');
const unixPath = `${tempDir(t)}/door`;
const baton = await startBaton(t, {
  args: ['-l', 'warning', '--concurrency', '2'],
  config: bootstrap({
    listeners: [
      {
        name: 'door',
        stat_prefix: 'door',
        address: { socket_address: { address: '0.0.0.0', port_value: 0 } },
        filter_chains: [
          chain('operators', { source_type: 'SAME_IP_OR_LOOPBACK' }),
          chain('tenants', { prefix_ranges: [range('127.0.0.2', 32)] }),
          chain('partners', { source_prefix_ranges: [range('127.0.0.4', 31)] }),
          chain('one', { source_prefix_ranges: [range('127.0.0.4', 31)], source_ports: [sourcePort] }),
          { ...tcpChain('bytes'), filter_chain_match: { direct_source_prefix_ranges: [range('127.0.0.6', 32)] } },
        ],
      },
      {
        name: 'gate',
        stat_prefix: 'gate',
        address: { socket_address: { address: '127.0.0.1', port_value: 0 } },
        filter_chains: [
          chain('elsewhere', { destination_port: 1 }),
          chain('raw', { transport_protocol: 'raw_buffer', source_type: 'EXTERNAL' }),
        ],
        default_filter_chain: chain('default'),
      },
      {
        name: 'pipe',
        stat_prefix: 'pipe',
        address: { pipe: { path: unixPath } },
        filter_chains: [
          chain('external', { source_type: 'EXTERNAL' }),
          chain('pipe', { source_type: 'SAME_IP_OR_LOOPBACK' }),
        ],
      },
      {
        name: 'open',
        stat_prefix: 'open',
        address: { pipe: { path: `${unixPath}2` } },
        default_filter_chain: chain('only'),
      },
    ],
    clusters: [staticCluster('bytes', upstream.port)],
  }),
});
const door = await baton.listenerPort('door');
const gate = await baton.listenerPort('gate');

t.test('the destination takes precedence over the source, and the source address over its port', async (t) => {
  t.equal(await answerOf(t, door, { host: '127.0.0.1' }), 'operators');
  t.equal(await answerOf(t, door, { host: '127.0.0.2' }), 'tenants');
  t.equal(await answerOf(t, door, { host: '127.0.0.2', localAddress: '127.0.0.2' }), 'tenants');
  t.equal(await answerOf(t, door, { host: '127.0.0.1', localAddress: '127.0.0.4' }), 'partners');
  t.equal(await answerOf(t, door, { host: '127.0.0.1', localAddress: '127.0.0.5' }), 'partners');
  t.equal(await answerOf(t, door, { host: '127.0.0.1', localAddress: '127.0.0.5', localPort: sourcePort }), 'one');
  // The source type is matched before the source address.
  t.equal(await answerOf(t, door, { host: '127.0.0.5', localAddress: '127.0.0.5' }), 'operators');
});

t.test('chains of one listener may have filters of different kinds', async (t) => {
  const connection = await open(t, door, { host: '127.0.0.1', localAddress: '127.0.0.6' });
  t.equal((await connection.readToEnd()).text, 'bytes');
});

t.test('a connection that matches no chain is closed, and counted as such only', async (t) => {
  await baton.waitForStat('listener.door.downstream_cx_active', 0);
  const before = await baton.stat('listener.door.downstream_cx_total');
  const connection = await open(t, door, { host: '127.0.0.1', localAddress: '127.0.0.8' });
  t.equal((await connection.readToEnd()).text, '');
  await baton.waitForStat('listener.door.no_filter_chain_match', 1);
  t.equal(await baton.stat('listener.door.downstream_cx_total'), before);
  t.equal(await baton.stat('listener.door.downstream_cx_active'), 0);
});

t.test('the default filter chain gets the remaining connections', async (t) => {
  t.equal(await answerOf(t, gate, { host: '127.0.0.1' }), 'default');
  t.equal(await answerOf(t, gate, { host: '127.0.0.1', localAddress: '127.0.0.9' }), 'raw');
  t.equal(await baton.stat('listener.gate.no_filter_chain_match'), 0);
});

t.test('peers of Unix sockets have the source type SAME_IP_OR_LOOPBACK', async (t) => {
  t.equal(await answerOf(t, unixPath), 'pipe');
  t.equal(await answerOf(t, `${unixPath}2`), 'only');
});

t.test('each chain has its stats from the start, and is in the dump', async (t) => {
  for (const name of ['elsewhere', 'external']) {
    t.equal(await baton.stat(`http.${name}.downstream_cx_total`), 0, name);
  }
  await waitFor(async () => (await baton.stat('http.partners.downstream_cx_total')) === 2);
  t.equal(await baton.stat('http.default.downstream_cx_total'), 1);
  t.equal(await baton.stat('tcp.bytes.downstream_cx_total'), 1);
  const { body } = await baton.admin('/config_dump?resource=static_route_configs');
  const names = new Set([...body.matchAll(/"name": ?"routes of (\w+)"/g)].map(([, name]) => name));
  t.same([...names].sort(), [
    'default',
    'elsewhere',
    'external',
    'one',
    'only',
    'operators',
    'partners',
    'pipe',
    'raw',
    'tenants',
  ]);
});

/** Returns a chain that answers with its own name. */
function chain(name: string, match?: Config): Config {
  const manager = managerOf([answering({ prefix: '/' }, name)]);
  (manager['route_config'] as Config)['name'] = `routes of ${name}`;
  const [only] = httpListener(name, 0, manager)['filter_chains'] as Config[];
  return { ...only, name, ...(match === undefined ? {} : { filter_chain_match: match }) };
}

function tcpChain(cluster: string): Config {
  return (tcpListener(cluster, 0, { cluster })['filter_chains'] as Config[])[0]!;
}

function range(address_prefix: string, prefix_len: number): Config {
  return { address_prefix, prefix_len };
}

interface Ends {
  readonly host: string;
  readonly localAddress?: string;
  readonly localPort?: number;
}

/** Returns the body that a new connection gets; `where`: a port, or the path of a Unix socket. */
async function answerOf(t: Test, where: number | string, ends?: Ends): Promise<string> {
  const connection = await open(t, where, ends);
  connection.write('GET / HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n');
  const { text } = await connection.readToEnd();
  return text.slice(text.indexOf('\r\n\r\n') + 4);
}

async function open(t: Teardown, where: number | string, ends?: Ends): Promise<RawConnection> {
  const socket = await new Promise<Socket>((resolve, reject) => {
    const opened = connect(typeof where === 'string' ? { path: where } : { port: where, allowHalfOpen: true, ...ends });
    opened.once('connect', () => resolve(opened)).once('error', reject);
  });
  t.teardown(() => socket.destroy());
  return new RawConnection(socket);
}

/** Returns a source port of this address that no other connection uses. */
async function freePort(host: string): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
