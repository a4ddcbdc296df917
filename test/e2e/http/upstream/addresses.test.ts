// Addresses of listeners and hosts: IPv4, IPv6, Unix sockets with a path or an abstract name.

import { createServer, request } from 'node:http';
import type { AddressInfo, ListenOptions } from 'node:net';
import { join } from 'node:path';
import t from 'tap';
import {
  bootstrap,
  type Config,
  httpListener,
  loopback,
  startBaton,
  staticCluster,
  tempDir,
} from '../../harness/index.js';
import { managerOf, routeTo, startProxy } from '../proxy.js';

const directory = tempDir(t);
const addresses: Record<string, Config> = {
  four: loopback(await startNamed('four', { host: '127.0.0.1', port: 0 })),
  six: ip6(await startNamed('six', { host: '::1', port: 0 })),
  path: { pipe: { path: join(directory, 'host.sock') } },
  abstract: { pipe: { path: `@${abstractName('host')}` } },
};
await startNamed('path', { path: join(directory, 'host.sock') });
await startNamed('abstract', { path: `\0${abstractName('host')}` });

t.test('hosts are reached at every kind of address', async (t) => {
  const names = Object.keys(addresses);
  const proxy = await startProxy(t, {
    listeners: { main: managerOf([...names, 'several'].map((name) => routeTo({ prefix: `/${name}` }, name))) },
    clusters: [
      ...names.map((name) => clusterAt(name, [addresses[name]!])),
      clusterAt('several', [addresses['four']!, addresses['six']!, addresses['path']!]),
    ],
  });
  for (const name of names) t.match(await proxy.get(`/${name}`), { status: 200, body: name });
  const bodies: string[] = [];
  for (let i = 0; i < 3; i++) bodies.push((await proxy.get('/several')).body);
  t.same(bodies.sort(), ['four', 'path', 'six'], 'hosts of one cluster may mix kinds of addresses');
});

t.test('listeners accept at every kind of address', async (t) => {
  const manager = managerOf([routeTo({ prefix: '/' }, 'four')], { use_remote_address: true });
  const front = { path: join(directory, 'front.sock'), abstract: `@${abstractName('front')}` };
  const baton = await startBaton(t, {
    config: bootstrap({
      listeners: [
        { ...httpListener('six', 0, manager), address: ip6(0) },
        { ...httpListener('path', 0, manager), address: { pipe: { path: front.path } } },
        { ...httpListener('abstract', 0, manager), address: { pipe: { path: front.abstract } } },
      ],
      clusters: [clusterAt('four', [addresses['four']!])],
    }),
    args: ['-l', 'warning', '--concurrency', '2'],
  });
  t.equal(await get({ host: '::1', port: await baton.listenerPort('six') }), '200 four');
  for (let i = 0; i < 4; i++) t.equal(await get({ socketPath: front.path }), '200 four');
  t.equal(await get({ socketPath: front.abstract.replace('@', '\0') }), '200 four');
  await baton.stop();
});

/** Starts an HTTP server that answers with its name; returns its port, if it has one. */
async function startNamed(name: string, where: ListenOptions): Promise<number> {
  const server = createServer((_request, answer) => void answer.end(name));
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(where, resolve));
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  const address = server.address() as AddressInfo | string;
  return typeof address === 'string' ? 0 : address.port;
}

/** Returns an abstract name of full length: Node.js pads shorter names with NULs, which become part of the name. */
function abstractName(name: string): string {
  return `baton-${name}-${process.pid}`.padEnd(107, '.');
}

function get(where: { host?: string; port?: number; socketPath?: string }): Promise<string> {
  return new Promise((resolve, reject) => {
    request({ ...where, agent: false, headers: { host: 'a' } }, (incoming) => {
      let body = '';
      incoming.setEncoding('latin1').on('data', (chunk: string) => {
        body += chunk;
      });
      incoming.on('end', () => resolve(`${incoming.statusCode} ${body}`)).on('error', reject);
    })
      .on('error', reject)
      .end();
  });
}

function ip6(port: number): Config {
  return { socket_address: { address: '::1', port_value: port } };
}

function clusterAt(name: string, at: Config[]): Config {
  const endpoints = [{ lb_endpoints: at.map((address) => ({ endpoint: { address } })) }];
  return staticCluster(name, [], { load_assignment: { cluster_name: name, endpoints } });
}
