// Clusters whose hosts are DNS names: a real name server on the loopback interface answers, changes its answers, or is silent.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { NameServer } from '../../upstream/dns/name-server.js';
import { ResourceFile } from '../dynamic/resource-file.js';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  httpListener,
  httpRequest,
  routeAllTo,
  startBaton,
  startUpstream,
  staticCluster,
  type Teardown,
  tempDir,
  waitFor,
} from '../harness/index.js';

/** Ends the responses to requests for /hold. */
const held: (() => void)[] = [];
const names = new NameServer();
await names.start();
t.teardown(() => names.stop());

/** Listens on all of 127.0.0.0/8, answers with the address it was reached at, and closes each connection after one response. */
const upstream = await startUpstream(
  t,
  ({ socket, url }, response) => {
    response.setHeader('connection', 'close');
    if (url === '/hold') held.push(() => response.end(socket.localAddress));
    else response.end(socket.localAddress);
  },
  0,
  '0.0.0.0',
);

t.test('STRICT_DNS uses every address of a name, and follows changes', async (t) => {
  names.answers.set('strict.test', { a: ['127.0.0.2', '127.0.0.3'], ttl: 1 });
  const baton = await serve(t, [dnsCluster('strict', 'STRICT_DNS', 'strict.test')]);
  t.same(await reached(baton, 'strict', 6), { '127.0.0.2': 3, '127.0.0.3': 3 });
  t.equal(await baton.stat('cluster.strict.membership_total'), 2);

  const port = await baton.listenerPort('strict');
  names.answers.set('strict.test', { a: ['127.0.0.3', '127.0.0.4'], ttl: 1 });
  await waitFor(
    async () => {
      const { status, body } = await httpRequest(port, '/');
      if (status !== 200) throw new Error(`status ${status} while hosts changed`);
      return body === '127.0.0.4';
    },
    { what: 'the new address' },
  );
  t.same(await reached(baton, 'strict', 6), { '127.0.0.3': 3, '127.0.0.4': 3 });
  t.equal(await baton.stat('cluster.strict.membership_change'), 2);
  t.ok((await baton.stat('cluster.strict.update_success'))! >= 2);

  names.answers.set('strict.test', 'servfail');
  await waitFor(async () => (await baton.stat('cluster.strict.update_failure'))! > 0, { what: 'a failed update' });
  t.same(await reached(baton, 'strict', 6), { '127.0.0.3': 3, '127.0.0.4': 3 }, 'known hosts stay after a failure');
  await baton.stop();
});

t.test('a changed cluster keeps its old hosts until the new names are resolved', async (t) => {
  names.answers.set('first.test', { a: ['127.0.0.2'] });
  names.answers.set('second.test', 'hang');
  const { baton, configure } = await serveChanging(t, dnsCluster('changing', 'STRICT_DNS', 'first.test'));
  t.same(await reached(baton, 'changing', 2), { '127.0.0.2': 2 });
  configure(dnsCluster('changing', 'STRICT_DNS', 'second.test'));
  await baton.waitForStat('cluster_manager.warming_clusters', 1);
  t.equal(await baton.stat('cluster.changing.warming_state'), 1);
  t.same(await reached(baton, 'changing', 5), { '127.0.0.2': 5 });
  const { body } = await baton.admin('/config_dump?resource=dynamic_warming_clusters');
  t.match(JSON.parse(body).configs, [{ version_info: '2', cluster: { name: 'changing' } }]);
  names.answers.set('second.test', { a: ['127.0.0.3'] });
  const port = await baton.listenerPort('changing');
  await waitFor(
    async () => {
      const { status, body } = await httpRequest(port, '/');
      if (status !== 200) throw new Error(`status ${status} while the cluster changed`);
      return body === '127.0.0.3';
    },
    { what: 'the hosts of the new name' },
  );
  await baton.waitForStat('cluster_manager.warming_clusters', 0);
  await baton.stop();
});

for (const type of ['STRICT_DNS', 'LOGICAL_DNS'] as const)
  t.test(`a ${type} cluster that changes while no name can be resolved keeps its hosts`, async (t) => {
    names.answers.set('failing.test', { a: ['127.0.0.2'] });
    const cluster = dnsCluster('changing', type, 'failing.test');
    const { baton, configure } = await serveChanging(t, cluster);
    names.answers.set('failing.test', 'servfail');
    await waitFor(async () => (await baton.stat('cluster.changing.update_failure'))! > 0, { what: 'a failed update' });
    configure({ ...cluster, connect_timeout: '3s' });
    const inUse = async () => (await baton.admin('/config_dump?resource=dynamic_active_clusters')).body;
    await waitFor(async () => (await inUse()).includes('"3s"'), { what: 'the new version' });
    t.same(await reached(baton, 'changing', 2), { '127.0.0.2': 2 });
    names.answers.set('failing.test', { a: ['127.0.0.3'] });
    const port = await baton.listenerPort('changing');
    await waitFor(async () => (await httpRequest(port, '/')).body === '127.0.0.3', { what: 'the new address' });
    t.equal(await baton.stat('cluster.changing.membership_total'), 1);
    await baton.stop();
  });

t.test('LOGICAL_DNS uses the first address of a name', async (t) => {
  names.answers.set('logical.test', { a: ['127.0.0.2', '127.0.0.3'], ttl: 1 });
  const baton = await serve(t, [dnsCluster('logical', 'LOGICAL_DNS', 'logical.test')]);
  t.same(await reached(baton, 'logical', 4), { '127.0.0.2': 4 });
  t.equal(await baton.stat('cluster.logical.membership_total'), 1);

  // An open connection keeps its address; new ones use the new address.
  const port = await baton.listenerPort('logical');
  const request = httpRequest(port, '/hold');
  await waitFor(() => held.length === 1, { what: 'the request that is held' });
  names.answers.set('logical.test', { a: ['127.0.0.4'], ttl: 1 });
  await waitFor(async () => (await httpRequest(port, '/')).body === '127.0.0.4', { what: 'the new address' });
  held[0]!();
  t.equal((await request).body, '127.0.0.2');
  t.equal(await baton.stat('cluster.logical.membership_total'), 1);
  await baton.stop();
});

t.test('a logical host that moves is not delayed by update_merge_window', async (t) => {
  names.answers.set('moving.test', { a: ['127.0.0.2'] });
  const common_lb_config = { update_merge_window: '3600s' };
  const baton = await serve(t, [{ ...dnsCluster('moving', 'LOGICAL_DNS', 'moving.test'), common_lb_config }]);
  const port = await baton.listenerPort('moving');
  for (const address of ['127.0.0.3', '127.0.0.4']) {
    names.answers.set('moving.test', { a: [address] });
    await waitFor(async () => (await httpRequest(port, '/')).body === address, { what: address });
  }
  await baton.stop();
});

t.test('addresses and names in /etc/hosts need no name server', async (t) => {
  const before = names.asked.length;
  const baton = await serve(t, [
    dnsCluster('local', 'STRICT_DNS', 'localhost'),
    dnsCluster('address', 'LOGICAL_DNS', '127.0.0.9'),
  ]);
  t.same(await reached(baton, 'local', 2), { '127.0.0.1': 2 });
  t.same(await reached(baton, 'address', 2), { '127.0.0.9': 2 });
  t.equal(names.asked.length, before);
  await baton.stop();
});

t.test('a name that does not exist blocks neither the start nor other clusters, and is resolved again', async (t) => {
  names.answers.delete('later.test');
  const baton = await serve(t, [
    dnsCluster('later', 'STRICT_DNS', 'later.test'),
    staticCluster('fixed', upstream.port),
  ]);
  const port = await baton.listenerPort('later');
  const { status, body } = await httpRequest(port, '/');
  t.equal(status, 503);
  t.equal(body, 'no healthy upstream');
  t.equal((await httpRequest(await baton.listenerPort('fixed'), '/')).status, 200);
  names.answers.set('later.test', { a: ['127.0.0.2'] });
  await waitFor(async () => (await httpRequest(port, '/')).status === 200, { what: 'the name to be found' });
  await baton.stop();
});

t.test('a silent name server delays neither signals nor other names', async (t) => {
  names.answers.set('silent.test', 'hang');
  names.answers.set('moving.test', { a: ['127.0.0.2'], ttl: 1 });
  const clusters = [
    dnsCluster('silent', 'STRICT_DNS', 'silent.test'),
    dnsCluster('moving', 'STRICT_DNS', 'moving.test'),
    staticCluster('fixed', upstream.port),
  ];
  const baton = await serve(t, clusters);
  t.equal((await httpRequest(await baton.listenerPort('silent'), '/')).status, 503);
  t.equal((await httpRequest(await baton.listenerPort('fixed'), '/')).status, 200);
  names.answers.set('moving.test', { a: ['127.0.0.3'], ttl: 1 });
  const port = await baton.listenerPort('moving');
  await waitFor(async () => (await httpRequest(port, '/')).body === '127.0.0.3', { what: 'the other name to move' });
  await baton.stop();

  const starting = await startBaton(t, { ...options(t, clusters), wait: 'spawned' });
  await waitFor(() => starting.stderr.includes('loading 3 cluster(s)'), { what: 'the start' });
  const { code } = await starting.kill('SIGTERM');
  t.equal(code, 0, 'a start that waits for DNS can be interrupted');
});

function serve(t: Teardown, clusters: Config[]): Promise<BatonProcess> {
  return startBaton(t, options(t, clusters));
}

/** Starts a Baton with one cluster from a file, and a listener that leads to it. */
async function serveChanging(t: Teardown, cluster: Config) {
  const file = new ResourceFile(tempDir(t), 'cds');
  const configure = (changed: Config) => file.write('envoy.config.cluster.v3.Cluster', changed);
  configure(cluster);
  const dynamic_resources = { cds_config: file.source };
  const routes = { ...routeAllTo('changing'), validate_clusters: false };
  const listeners = [httpListener('changing', 0, { route_config: routes })];
  const config = bootstrap({ listeners, clusters: [], extra: { dynamic_resources } });
  return { baton: await startBaton(t, { ...options(t, []), config }), configure };
}

function options(t: Teardown, clusters: Config[]) {
  const path = join(tempDir(t), 'resolv.conf');
  writeFileSync(path, `nameserver ${names.address}\noptions timeout:1 attempts:2\n`);
  return {
    config: bootstrap({
      listeners: clusters.map(({ name }) =>
        httpListener(name as string, 0, { route_config: routeAllTo(name as string) }),
      ),
      clusters,
    }),
    nodeArgs: ['--import', new URL('./resolv-conf.js', import.meta.url).href],
    env: { BATON_TEST_RESOLV_CONF: path },
  };
}

function dnsCluster(name: string, type: 'STRICT_DNS' | 'LOGICAL_DNS', host: string): Config {
  const address = { socket_address: { address: host, port_value: upstream.port } };
  return {
    name,
    type,
    connect_timeout: '2s',
    dns_lookup_family: 'V4_ONLY',
    dns_refresh_rate: '0.2s',
    load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: [{ endpoint: { address } }] }] },
  };
}

/** Returns how many of `count` requests reached each address. */
async function reached(baton: BatonProcess, listener: string, count: number): Promise<Record<string, number>> {
  const port = await baton.listenerPort(listener);
  const result: Record<string, number> = {};
  for (let index = 0; index < count; index++) {
    const { body } = await httpRequest(port, '/');
    result[body] = (result[body] ?? 0) + 1;
  }
  return result;
}
