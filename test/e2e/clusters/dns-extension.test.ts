// Clusters with cluster_type: the DNS cluster extension with its own resolver, and the names of the built-in types.

import t from 'tap';
import { NameServer } from '../../upstream/dns/name-server.js';
import { besideEnvoy, type ProxyProgram } from '../harness/envoy.js';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  httpListener,
  httpRequest,
  routeAllTo,
  startBaton,
  startUpstream,
  type Teardown,
  waitFor,
} from '../harness/index.js';

const names = new NameServer();
await names.start();
t.teardown(() => names.stop());
const [, namePort] = names.address.split(':');

/** Listens on all of 127.0.0.0/8, and answers with the address at which it was reached. */
const upstream = await startUpstream(
  t,
  ({ socket }, response) => {
    response.setHeader('connection', 'close');
    response.end(socket.localAddress);
  },
  0,
  '0.0.0.0',
);
const DNS = 'type.googleapis.com/envoy.extensions.clusters.dns.v3.DnsCluster';
const RESOLVER = {
  name: 'envoy.network.dns_resolver.cares',
  typed_config: {
    '@type': 'type.googleapis.com/envoy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig',
    resolvers: [{ socket_address: { address: '127.0.0.1', port_value: Number(namePort) } }],
    dns_resolver_options: { no_default_search_domain: true },
    query_timeout_seconds: 5,
    query_tries: 1,
  },
};

besideEnvoy('the extension resolves all addresses of a name, with its own name servers', async (t, program) => {
  names.answers.set('many.test', { a: ['127.0.0.2', '127.0.0.3'], ttl: 1 });
  const proxy = await start(t, program, 'many.test', {
    cluster_type: {
      name: 'envoy.cluster.dns',
      typed_config: {
        '@type': DNS,
        dns_lookup_family: 'V4_ONLY',
        dns_refresh_rate: '600s',
        respect_dns_ttl: true,
        typed_dns_resolver_config: RESOLVER,
      },
    },
  });
  t.same(await reached(proxy, 8), { '127.0.0.2': 4, '127.0.0.3': 4 });
  names.answers.set('many.test', { a: ['127.0.0.3', '127.0.0.4'], ttl: 600 });
  await waitFor(async () => (await reached(proxy, 4))['127.0.0.4'] === 2, { what: 'the addresses after the TTL' });
  await proxy.stop();
});

besideEnvoy('with all_addresses_in_single_endpoint a cluster has one host', async (t, program) => {
  names.answers.set('single.test', { a: ['127.0.0.2', '127.0.0.3'], ttl: 600 });
  const proxy = await start(t, program, 'single.test', {
    cluster_type: {
      // The message decides, not the name.
      name: 'any',
      typed_config: {
        '@type': DNS,
        dns_lookup_family: 'V4_ONLY',
        all_addresses_in_single_endpoint: true,
        typed_dns_resolver_config: RESOLVER,
      },
    },
  });
  t.equal(await proxy.stat('cluster.c.membership_total'), 1);
  t.equal(Object.keys(await reached(proxy, 4)).length, 1);
  await proxy.stop();
});

besideEnvoy('fields of the cluster have no effect on the extension, and none are needed', async (t, program) => {
  const proxy = await start(t, program, 'localhost', {
    cluster_type: { name: 'envoy.cluster.dns', typed_config: { '@type': DNS, dns_lookup_family: 'V4_ONLY' } },
    dns_lookup_family: 'V6_ONLY',
    respect_dns_ttl: true,
  });
  t.same(await reached(proxy, 2), { '127.0.0.1': 2 });
  await proxy.stop();
});

besideEnvoy('names of extensions mean the built-in types', async (t, program) => {
  names.answers.set('named.test', { a: ['127.0.0.5', '127.0.0.6'], ttl: 600 });
  for (const [name, hosts] of [
    ['envoy.cluster.strict_dns', 2],
    ['envoy.cluster.logical_dns', 1],
  ] as const) {
    const more = { dns_lookup_family: 'V4_ONLY', typed_dns_resolver_config: RESOLVER };
    const proxy = await start(t, program, 'named.test', { cluster_type: { name }, ...more });
    t.equal(await proxy.stat('cluster.c.membership_total'), hosts, name);
    await proxy.stop();
  }
  const proxy = await start(t, program, '127.0.0.1', { cluster_type: { name: 'envoy.cluster.static' } });
  t.same(await reached(proxy, 2), { '127.0.0.1': 2 });
  await proxy.stop();
});

besideEnvoy('clusters use the resolver of the bootstrap', async (t, program) => {
  names.answers.set('common.test', { a: ['127.0.0.7'], ttl: 600 });
  const more = { type: 'STRICT_DNS', dns_lookup_family: 'V4_ONLY' };
  const proxy = await start(t, program, 'common.test', more, { typed_dns_resolver_config: RESOLVER });
  t.same(await reached(proxy, 2), { '127.0.0.7': 2 });
  await proxy.stop();
});

async function start(t: Teardown, program: ProxyProgram, host: string, more: Config, extra: Config = {}) {
  const address = { socket_address: { address: host, port_value: upstream.port } };
  const cluster = {
    name: 'c',
    connect_timeout: '2s',
    load_assignment: { cluster_name: 'c', endpoints: [{ lb_endpoints: [{ endpoint: { address } }] }] },
    ...more,
  };
  const config = bootstrap({
    listeners: [httpListener('web', 0, { route_config: routeAllTo('c') })],
    clusters: [cluster],
    extra,
  });
  return startBaton(t, { ...program, config, args: ['--concurrency', '1'] });
}

/** Returns how many of `count` requests reached each address. */
async function reached(proxy: BatonProcess, count: number): Promise<Record<string, number>> {
  const port = await proxy.listenerPort('web');
  const result: Record<string, number> = {};
  for (let index = 0; index < count; index++) {
    const { body } = await httpRequest(port, '/');
    result[body] = (result[body] ?? 0) + 1;
  }
  return result;
}
