// Hosts with several addresses: connects try one after another (Happy Eyeballs). The expected results are those of Envoy 1.40.

import t from 'tap';
import { NameServer } from '../../upstream/dns/name-server.js';
import { startBlackHole } from '../harness/black-hole.js';
import { Authority } from '../harness/certificates.js';
import { besideEnvoy, type ProxyProgram } from '../harness/envoy.js';
import {
  bootstrap,
  type Config,
  connectRaw,
  freePort,
  ROUTER_FILTER,
  routeAllTo,
  startBaton,
  startTcpUpstream,
  startUpstream,
  staticCluster,
  type Teardown,
  tcpListener,
  waitFor,
} from '../harness/index.js';
import { managerOf, routeTo, startProxy } from '../http/proxy.js';
import { clientTls, startSecureHost, trustedCa } from '../tls/contexts.js';

/** Reached at 127.0.0.3 and at no other address with its port. */
const host = await startUpstream(t, (_request, response) => void response.end('served'), 0, '127.0.0.3');
const hole = await startBlackHole(t);

const at = (address: string, port = host.port) => ({ socket_address: { address, port_value: port } });
const REFUSING = at('127.0.0.2');
const SERVING = at('127.0.0.3');

/** Returns a cluster of one host with these addresses. */
function clusterOf([address, ...others]: Config[], more: Config = {}): Config {
  const endpoint = { address, additional_addresses: others.map((other) => ({ address: other })) };
  return {
    ...staticCluster('c', 0, more),
    load_assignment: { cluster_name: 'c', endpoints: [{ lb_endpoints: [{ endpoint }] }] },
  };
}

const SHOWN = [
  { header: { key: 'x-host', value: '%UPSTREAM_HOST%' } },
  { header: { key: 'x-remote', value: '%UPSTREAM_REMOTE_ADDRESS%' } },
];

function start(t: Teardown, program: ProxyProgram, cluster: Config) {
  const route_config = { ...routeAllTo('c', { retry_policy: {} }), response_headers_to_add: SHOWN };
  return startProxy(t, {
    ...program,
    args: ['-l', 'error', '--concurrency', '1'],
    listeners: { l: { route_config } },
    clusters: [cluster],
  });
}

besideEnvoy('the next address is tried when one refuses', async (t, program) => {
  const { baton, get } = await start(t, program, clusterOf([REFUSING, SERVING]));
  const answer = await get('/');
  t.match(answer, { status: 200, body: 'served' });
  t.match(answer.headers, { 'x-host': `127.0.0.2:${host.port}`, 'x-remote': `127.0.0.3:${host.port}` });
  await baton.waitForStats({
    'cluster.c.upstream_cx_total': 2,
    'cluster.c.upstream_cx_active': 1,
    'cluster.c.upstream_cx_connect_fail': 0,
    'cluster.c.upstream_cx_http1_total': 1,
  });
});

besideEnvoy('the next address is tried when one does not answer', async (t, program) => {
  const { baton, get } = await start(t, program, clusterOf([at('127.0.0.1', hole), SERVING]));
  t.match(await get('/'), { status: 200, headers: { 'x-remote': `127.0.0.3:${host.port}` } });
  await baton.waitForStats({ 'cluster.c.upstream_cx_total': 2, 'cluster.c.upstream_cx_active': 1 });
});

besideEnvoy('a connect fails when no address accepts', async (t, program) => {
  const { baton, get } = await start(t, program, clusterOf([REFUSING, at('127.0.0.4'), at('127.0.0.5')]));
  const answer = await get('/');
  t.match(answer, { status: 503 });
  t.match(answer.headers, { 'x-host': `127.0.0.2:${host.port}`, 'x-remote': undefined });
  await baton.waitForStats({
    'cluster.c.upstream_cx_total': 3,
    'cluster.c.upstream_cx_active': 0,
    'cluster.c.upstream_cx_connect_fail': 1,
    'cluster.c.upstream_cx_destroy_remote': 1,
  });
});

besideEnvoy('the connect timeout applies to all addresses together', async (t, program) => {
  const silent = at('127.0.0.1', hole);
  const { baton, get } = await start(t, program, clusterOf([silent, silent], { connect_timeout: '0.7s' }));
  t.match(await get('/'), { status: 503 });
  await baton.waitForStats({
    'cluster.c.upstream_cx_total': 2,
    'cluster.c.upstream_cx_active': 0,
    'cluster.c.upstream_cx_connect_timeout': 1,
    'cluster.c.upstream_cx_connect_fail': 1,
  });
});

besideEnvoy('a client that leaves ends the tries', async (t, program) => {
  const silent = at('127.0.0.1', hole);
  const { baton, port } = await start(t, program, clusterOf([silent, silent, silent], { connect_timeout: '20s' }));
  const client = await connectRaw(t, port);
  client.write('GET / HTTP/1.1\r\nhost: h\r\n\r\n');
  await baton.waitForStats({ 'cluster.c.upstream_cx_total': 3 });
  client.destroy();
  await baton.waitForStats({ 'cluster.c.upstream_cx_active': 0, 'cluster.c.upstream_cx_connect_fail': 1 });
});

besideEnvoy('happy_eyeballs_config selects the family of the first tries', async (t, program) => {
  const six = await startUpstream(t, (_request, response) => void response.end('six'), host.port, '::1');
  t.teardown(() => six.close());
  const preference = (first_address_family_version: string) => ({
    upstream_connection_options: { happy_eyeballs_config: { first_address_family_version } },
  });
  const first = async (addresses: Config[], more: Config) => {
    const { get } = await start(t, program, clusterOf(addresses, more));
    return (await get('/')).headers['x-remote'];
  };
  t.equal(await first([SERVING, at('::1')], preference('V6')), `[::1]:${host.port}`);
  t.equal(await first([at('::1'), SERVING], preference('V4')), `127.0.0.3:${host.port}`);
  t.equal(await first([at('::1'), SERVING], preference('DEFAULT')), `[::1]:${host.port}`);
});

besideEnvoy('only the first address is checked', async (t, program) => {
  const health_checks = [
    {
      timeout: '1s',
      interval: '0.2s',
      no_traffic_interval: '0.2s',
      unhealthy_threshold: 1,
      healthy_threshold: 1,
      http_health_check: { path: '/' },
    },
  ];
  const { baton } = await start(t, program, clusterOf([REFUSING, SERVING], { health_checks }));
  await waitFor(async () => (await baton.stat('cluster.c.health_check.failure'))! > 1, { what: 'two failed checks' });
  t.equal(await baton.stat('cluster.c.health_check.success'), 0);
});

besideEnvoy('a host whose first address does not speak TLS is reached at the next one', async (t, program) => {
  const plain = await startTcpUpstream(t, (socket) => socket.destroy());
  const authority = await Authority.create();
  const certificate = await authority.issue({ names: ['localhost'] });
  const { port } = await startSecureHost(t, certificate, (_request, response) => void response.end());
  const cluster = clusterOf([at('127.0.0.1', plain.port), at('127.0.0.1', port)], {
    transport_socket: clientTls({ validation_context: trustedCa(authority) }),
  });
  const { get } = await start(t, program, cluster);
  t.match(await get('/'), { status: 200, headers: { 'x-remote': `127.0.0.1:${port}` } });
});

besideEnvoy('a TCP proxy tries the addresses too', async (t, program) => {
  const echo = await startTcpUpstream(t, (socket) => void socket.pipe(socket), 0, '127.0.0.3');
  const baton = await startBaton(t, {
    ...program,
    args: ['-l', 'error'],
    config: bootstrap({
      listeners: [tcpListener('tcp', 0, { cluster: 'c' })],
      clusters: [clusterOf([at('127.0.0.2', echo.port), at('127.0.0.3', echo.port)])],
    }),
  });
  const client = await connectRaw(t, await baton.listenerPort('tcp'));
  client.write('hello');
  await client.readUntil('hello');
  await baton.waitForStats({ 'cluster.c.upstream_cx_total': 2, 'cluster.c.upstream_cx_active': 1 });
});

const names = new NameServer();
await names.start();
t.teardown(() => names.stop());

const RESOLVER = {
  typed_dns_resolver_config: {
    name: 'envoy.network.dns_resolver.cares',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig',
      resolvers: [at('127.0.0.1', Number(names.address.split(':')[1]))],
      dns_resolver_options: { no_default_search_domain: true },
    },
  },
};

besideEnvoy('all addresses of a name are those of a logical host', async (t, program) => {
  names.answers.set('two.test', { a: ['127.0.0.2', '127.0.0.3'], ttl: 60 });
  for (const dns_lookup_family of ['ALL', 'V4_ONLY']) {
    const { baton, get } = await start(t, program, {
      ...clusterOf([at('two.test')], { ...RESOLVER, dns_lookup_family }),
      type: 'LOGICAL_DNS',
    });
    t.match(await get('/'), { status: 200, headers: { 'x-remote': `127.0.0.3:${host.port}` } }, dns_lookup_family);
    t.equal(await baton.stat('cluster.c.membership_total'), 1);
  }
});

besideEnvoy('all addresses of a requested name are tried', async (t, program) => {
  names.answers.set('many.test', { a: ['127.0.0.2', '127.0.0.3'], aaaa: [[0, 0, 0, 0, 0, 0, 0, 1]], ttl: 60 });
  const dns_cache_config = { name: 'cache', dns_lookup_family: 'ALL', ...RESOLVER };
  const type = 'type.googleapis.com/envoy.extensions';
  const filter = {
    name: 'dfp',
    typed_config: { '@type': `${type}.filters.http.dynamic_forward_proxy.v3.FilterConfig`, dns_cache_config },
  };
  const cluster = {
    name: 'c',
    lb_policy: 'CLUSTER_PROVIDED',
    cluster_type: {
      name: 'envoy.clusters.dynamic_forward_proxy',
      typed_config: { '@type': `${type}.clusters.dynamic_forward_proxy.v3.ClusterConfig`, dns_cache_config },
    },
  };
  const { get } = await startProxy(t, {
    ...program,
    listeners: { l: managerOf([routeTo({ prefix: '/' }, 'c')], { http_filters: [filter, ROUTER_FILTER] }) },
    clusters: [cluster],
  });
  t.match(await get('/', { headers: { host: `many.test:${host.port}` } }), { status: 200, body: 'served' });
});

t.test('endpoints that cannot be connected to are refused', async (t) => {
  const refusal = async (cluster: Config) => {
    const baton = await startBaton(t, {
      args: ['--mode', 'validate'],
      wait: 'spawned',
      config: bootstrap({ listeners: [], clusters: [cluster] }),
    });
    await baton.exited;
    return baton.stderr;
  };
  t.match(await refusal(clusterOf([SERVING, at('name.test')])), /malformed IP address: name\.test/);
  t.match(await refusal(clusterOf([SERVING, undefined as never])), /Address must be set/);
  t.match(
    await refusal({ ...clusterOf([at('name.test'), SERVING]), type: 'STRICT_DNS' }),
    /a STRICT_DNS cluster resolves names, which have all the addresses of a host/,
  );
  const port = await freePort();
  t.match(await refusal(clusterOf(Array(40).fill(at('127.0.0.1', port)))), /at most 31 additional addresses, found 39/);
});
