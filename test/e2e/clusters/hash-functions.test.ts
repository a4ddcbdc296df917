// Hosts that Baton and Envoy choose for the same hashes.

import t from 'tap';
import { besideEnvoy } from '../harness/envoy.js';
import {
  bootstrap,
  type Config,
  httpListener,
  httpRequest,
  loopback,
  routeAllTo,
  startBaton,
  startUpstream,
  staticCluster,
} from '../harness/index.js';

const NAMES = ['a', 'b', 'c', 'd'];
const upstreams = await Promise.all(
  NAMES.map((name) => startUpstream(t, (_request, response) => void response.end(name))),
);
const USERS = Array.from({ length: 24 }, (_, index) => `user-${index}`);
/** Hosts are hashed by these keys, whatever their ports. */
const lb_endpoints = upstreams.map(({ port }, index) => ({
  endpoint: { address: loopback(port) },
  metadata: { filter_metadata: { 'envoy.lb': { hash_key: `host-${NAMES[index]}` } } },
}));
const halves = [lb_endpoints.slice(0, 3), lb_endpoints.slice(3)].map((hosts, index) => ({
  locality: { zone: `${index}` },
  load_balancing_weight: 1 + index,
  lb_endpoints: hosts,
}));
const WEIGHTED = { common_lb_config: { locality_weighted_lb_config: {} } };

for (const [what, endpoints, options, hosts] of [
  [
    'a ring of XX_HASH',
    [{ lb_endpoints }],
    { lb_policy: 'RING_HASH', ring_hash_lb_config: { hash_function: 'XX_HASH' } },
    'ccdcadcdabadbaccdcadbcad',
  ],
  [
    'a ring of MURMUR_HASH_2',
    [{ lb_endpoints }],
    { lb_policy: 'RING_HASH', ring_hash_lb_config: { hash_function: 'MURMUR_HASH_2' } },
    'babccbbbccdaabdbbadbccba',
  ],
  ['a ring with weighted localities', halves, { lb_policy: 'RING_HASH', ...WEIGHTED }, 'dcddddcdadddbddbddddaddd'],
  ['a table with weighted localities', halves, { lb_policy: 'MAGLEV', ...WEIGHTED }, 'dadcddcddaddaddddddddcdd'],
] as const) {
  besideEnvoy(`${what} gives each user the same host as Envoy does`, async (t, program) => {
    const cluster = { ...staticCluster('c', []), load_assignment: { cluster_name: 'c', endpoints }, ...options };
    const hash_policy = [{ header: { header_name: 'x-user' } }];
    const config = bootstrap({
      listeners: [httpListener('web', 0, { route_config: routeAllTo('c', { hash_policy }) })],
      clusters: [cluster as Config],
    });
    const proxy = await startBaton(t, { ...program, config });
    const port = await proxy.listenerPort('web');
    const answers = await Promise.all(USERS.map((user) => httpRequest(port, '/', { headers: { 'x-user': user } })));
    t.equal(answers.map(({ body }) => body).join(''), hosts);
  });
}
