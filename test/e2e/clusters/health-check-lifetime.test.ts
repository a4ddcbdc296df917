// Health checks across changes of their cluster: added and removed endpoints, new versions, reloads, and removal.

import { readdirSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import t from 'tap';
import { ResourceFile } from '../dynamic/resource-file.js';
import {
  bootstrap,
  type Config,
  httpListener,
  loopback,
  routeAllTo,
  startBaton,
  type Teardown,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { answers, CheckedUpstream, checked, flags, http, startWith } from './checked-upstream.js';

function edsCluster(assigned: ResourceFile, more: Config = {}): Config {
  const { load_assignment, ...cluster } = checked('api', [], http(), more);
  return { ...cluster, type: 'EDS', eds_cluster_config: { eds_config: assigned.source } };
}

function assign(assigned: ResourceFile, ports: readonly number[]): void {
  const lb_endpoints = ports.map((port) => ({ endpoint: { address: loopback(port) } }));
  assigned.write('envoy.config.endpoint.v3.ClusterLoadAssignment', {
    cluster_name: 'api',
    endpoints: [{ lb_endpoints }],
  });
}

t.test('a host removed by discovery is used until it fails its checks', async (t) => {
  const [a, b] = await Promise.all([CheckedUpstream.start(t, 'a'), CheckedUpstream.start(t, 'b')]);
  const assigned = new ResourceFile(tempDir(t), 'eds');
  assign(assigned, [a.port, b.port]);
  const baton = await startWith(t, edsCluster(assigned));
  t.same(await answers(baton), ['a', 'b']);
  assign(assigned, [a.port]);
  await waitFor(async () => (await flags(baton))[b.port] === '/pending_dynamic_removal');
  t.same(await answers(baton), ['a', 'b']);
  b.answer = { status: 500 };
  await baton.waitForStat('cluster.api.membership_total', 1);
  await waitFor(async () => (await answers(baton)).length === 1);
  await waitFor(() => b.upstream.sockets.size === 0);
  t.same(await flags(baton), { [a.port]: 'healthy' });
  t.equal(await baton.stat('cluster.api.health_check.healthy'), 1);
});

t.test('with ignore_health_on_host_removal a removed host goes at once', async (t) => {
  const [a, b] = await Promise.all([CheckedUpstream.start(t, 'a'), CheckedUpstream.start(t, 'b')]);
  const assigned = new ResourceFile(tempDir(t), 'eds');
  assign(assigned, [a.port, b.port]);
  const baton = await startWith(t, edsCluster(assigned, { ignore_health_on_host_removal: true }));
  assign(assigned, [a.port]);
  await baton.waitForStat('cluster.api.membership_total', 1);
  await waitFor(() => b.upstream.sockets.size === 0);
});

t.test(
  'a reload checks the hosts of a changed cluster before it is used, and stops checks of removed clusters',
  async (t) => {
    const [a, b] = await Promise.all([CheckedUpstream.start(t, 'a'), CheckedUpstream.start(t, 'b')]);
    const baton = await startWith(t, checked('api', [a.port], http()));
    const config = (clusters: Config[]) =>
      JSON.stringify(
        bootstrap({ listeners: [httpListener('http', 0, { route_config: routeAllTo('api') })], clusters }),
      );
    const reload = async (clusters: Config[]) => {
      writeFileSync(baton.configPath, config(clusters));
      const { body } = await baton.admin('/config/reload?format=json&apply=true', { method: 'POST' });
      t.equal(JSON.parse(body).outcome, 'applied', body);
    };
    await reload([checked('api', [b.port], http()), checked('more', [a.port, b.port], { tcp_health_check: {} })]);
    t.same(await flags(baton), { [b.port]: 'healthy' });
    t.same(await flags(baton, 'more'), { [a.port]: 'healthy', [b.port]: 'healthy' });
    t.same(await answers(baton), ['b']);
    await reload([checked('api', [b.port], http(), { health_checks: [] })]);
    await waitFor(() => a.upstream.sockets.size === 0);
    t.same(await answers(baton), ['b']);
    const { length } = b.checks;
    t.same(await answers(baton, 50), ['b']);
    t.equal(b.checks.length, length, 'it is not checked any more');
  },
);

/** A proxy that connects to the port of the target. */
async function startHttpProxy(t: Teardown): Promise<{ readonly port: number; connections: number }> {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    proxy.connections++;
    socket.on('error', () => {});
    socket.once('data', (head) => {
      const host = connect(Number(/:(\d+) /.exec(head.toString('latin1'))![1]), '127.0.0.1');
      sockets.push(host);
      host.on('error', () => {});
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      socket.pipe(host).pipe(socket);
    });
    sockets.push(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  const proxy = { port: (server.address() as { port: number }).port, connections: 0 };
  return proxy;
}

t.test('checks follow the host to another HTTP proxy', async (t) => {
  const a = await CheckedUpstream.start(t, 'a');
  const [first, second] = [await startHttpProxy(t), await startHttpProxy(t)];
  const assigned = new ResourceFile(tempDir(t), 'eds');
  const through = (port: number) => {
    const key = 'envoy.http11_proxy_transport_socket.proxy_address';
    const proxy = { '@type': 'type.googleapis.com/envoy.config.core.v3.Address', ...loopback(port) };
    const endpoint = { address: loopback(a.port) };
    assigned.write('envoy.config.endpoint.v3.ClusterLoadAssignment', {
      cluster_name: 'api',
      endpoints: [{ lb_endpoints: [{ endpoint, metadata: { typed_filter_metadata: { [key]: proxy } } }] }],
    });
  };
  through(first.port);
  const sockets = 'type.googleapis.com/envoy.extensions.transport_sockets';
  const baton = await startWith(
    t,
    edsCluster(assigned, {
      transport_socket: {
        name: 'proxy',
        typed_config: {
          '@type': `${sockets}.http_11_proxy.v3.Http11ProxyUpstreamTransport`,
          transport_socket: { name: 'raw', typed_config: { '@type': `${sockets}.raw_buffer.v3.RawBuffer` } },
        },
      },
    }),
  );
  await baton.waitForStat('cluster.api.health_check.healthy', 1);
  t.equal(first.connections, 1);
  through(second.port);
  await waitFor(() => second.connections > 0, { what: 'a check through the other proxy' });
  t.same(await flags(baton), { [a.port]: 'healthy' });
});

t.test('cluster updates leak no connection and no descriptor of health checks', async (t) => {
  const a = await CheckedUpstream.start(t, 'a');
  const cds = new ResourceFile(tempDir(t), 'cds');
  const write = (clusters: Config[]) => cds.write('envoy.config.cluster.v3.Cluster', ...clusters);
  write([]);
  const baton = await startBaton(t, {
    config: bootstrap({ listeners: [], clusters: [], extra: { dynamic_resources: { cds_config: cds.source } } }),
  });
  const descriptors = () => readdirSync(`/proc/${baton.pid}/fd`).length;
  const round = async (number: number) => {
    const name = `api-${number}`;
    write([
      checked(name, [a.port], http()),
      checked('tcp', [a.port], { tcp_health_check: {}, interval: `${number + 1}s` }),
    ]);
    await baton.waitForStat(`cluster.${name}.health_check.healthy`, 1);
  };
  const empty = async () => {
    write([]);
    await baton.waitForStat('cluster_manager.active_clusters', 0);
    await waitFor(() => a.upstream.sockets.size === 0);
  };
  await round(0);
  await empty();
  const before = descriptors();
  for (let number = 1; number <= 10; number++) await round(number);
  await empty();
  await waitFor(() => descriptors() <= before);
  const stats = async () => Object.keys(await baton.stats('cluster.')).filter((name) => name.includes('health_check'));
  await waitFor(async () => (await stats()).length === 0);
});
