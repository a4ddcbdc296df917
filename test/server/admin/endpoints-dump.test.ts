import t from 'tap';
import { prettyPieces } from '../../../src/admin/config-dump/pretty-pieces.js';
import { LazyList } from '../../../src/admin/json.js';
import { endpointsDump } from '../../../src/server/admin/dumps/endpoints-dump.js';
import type { PrimaryCluster } from '../../../src/server/clusters/version/primary-cluster.js';
import { endpointsOf, HostDirectory } from '../../admin/clusters/hosts.js';

t.test('the endpoints of a cluster are created lazily, while they are printed', async (t) => {
  const directory = new HostDirectory({
    allocate: () => ({ block: 0, scope: { prefix: '', layout: 0, chunk: 0, base: 0 } }),
    retire: () => undefined,
  });
  directory.update([...endpointsOf(2000), { ...endpointsOf(2001).at(-1)!, priority: 1, localityWeight: 7 }]);
  const cluster = {
    config: {},
    origin: { isAddedViaApi: false, sensitive: [] },
    edsServiceName: '',
    spec: { name: 'c' },
    hosts: directory.hosts,
    membership: { snapshot: { policy: { overprovisioning: 140 } } },
  } as unknown as PrimaryCluster;
  const dump = endpointsDump(new Map([['c', cluster]]));
  const [resource] = dump.lists!['static_endpoint_configs']!;
  const config = resource!.message['endpoint_config'] as { endpoints: { lb_endpoints: unknown }[] };
  t.ok(config.endpoints[0]!.lb_endpoints instanceof LazyList, 'no list of two thousand is held for a slow client');
  const texts = [...prettyPieces(resource!.message)];
  t.ok(texts.length > 2000);
  const { endpoints } = JSON.parse(texts.join('')).endpoint_config;
  t.match(endpoints, [
    { locality: { zone: 'z' }, lb_endpoints: { length: 2000 }, load_balancing_weight: 0 },
    { priority: 1, lb_endpoints: { length: 1 }, load_balancing_weight: 7 },
  ]);
  t.match(endpoints[0].lb_endpoints[1999], {
    endpoint: { address: { socket_address: { address: '10.0.7.207', port_value: 80 } } },
    health_status: 'HEALTHY',
    load_balancing_weight: 1,
  });
});
