// Requests that share a header, a cookie, a query parameter or a client address go to one host.

import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import t from 'tap';
import { ResourceFile } from '../dynamic/resource-file.js';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  connectRaw,
  httpListener,
  httpRequest,
  loopback,
  routeAllTo,
  startBaton,
  startTcpUpstream,
  startUpstream,
  staticCluster,
  tcpListener,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { managerOf, routeTo } from '../http/proxy.js';

const NAMES = ['a', 'b', 'c', 'd'];
const upstreams = await Promise.all(
  NAMES.map((name) =>
    startUpstream(t, (request, response) => {
      if (request.headers['x-broken'] === name) request.socket.destroy();
      else response.end(name);
    }),
  ),
);
const ports = upstreams.map(({ port }) => port);
const echoes = await Promise.all(NAMES.map((name) => startTcpUpstream(t, (socket) => void socket.end(name))));

const RING = { lb_policy: 'RING_HASH' };
/** A larger ring approximates the weights better. */
const FINE_RING = { ...RING, ring_hash_lb_config: { minimum_ring_size: 65_536 } };
const MAGLEV = { lb_policy: 'MAGLEV' };
/** Independent of the ports: the same users always have the same hosts. */
const BY_NAME = { common_lb_config: { consistent_hashing_lb_config: { use_hostname_for_hashing: true } } };
const endpoints = new ResourceFile(tempDir(t), 'endpoints');
const assigned = (hosts: readonly number[]) =>
  endpoints.write(
    'envoy.config.endpoint.v3.ClusterLoadAssignment',
    staticCluster('changing', [...hosts])['load_assignment'] as Config,
  );
assigned(ports);

const byUser = { header: { header_name: 'x-user' } };
const byCookie = { cookie: { name: 'id', ttl: '3600s', path: '/', attributes: [{ name: 'SameSite', value: 'Lax' }] } };
const routes: Record<string, [cluster: string, action: Config]> = {
  header: ['ring', { hash_policy: [byUser], prefix_rewrite: '/rewritten/' }],
  table: ['maglev', { hash_policy: [byUser] }],
  cookie: ['ring', { hash_policy: [byCookie] }],
  'cookie elsewhere': ['robin', { hash_policy: [byCookie] }],
  source: ['ring', { hash_policy: [{ connection_properties: { source_ip: true } }] }],
  query: ['ring', { hash_policy: [{ query_parameter: { name: 'user' } }], prefix_rewrite: '/' }],
  terminal: ['ring', { hash_policy: [{ ...byUser, terminal: true }, { query_parameter: { name: 'user' } }] }],
  nothing: ['ring', {}],
  weighted: ['weighted', { hash_policy: [byUser] }],
  named: ['named', { hash_policy: [byUser] }],
  renamed: ['renamed', { hash_policy: [byUser] }],
  changing: ['changing', { hash_policy: [byUser] }],
  retried: ['ring', { hash_policy: [byUser], retry_policy: { retry_on: '5xx', num_retries: 1 } }],
  'retried elsewhere': [
    'ring',
    {
      hash_policy: [byUser],
      retry_policy: {
        retry_on: '5xx',
        num_retries: 1,
        retry_host_predicate: [
          {
            name: 'envoy.retry_host_predicates.previous_hosts',
            typed_config: {
              '@type': 'type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate',
            },
          },
        ],
        host_selection_retry_max_attempts: '200',
      },
    },
  ],
};
const clusters = [
  staticCluster('ring', ports, RING),
  staticCluster('maglev', ports, MAGLEV),
  staticCluster('robin', ports),
  hostsCluster('weighted', ['h1', 'h2', 'h3', 'h4'], { ...FINE_RING, ...BY_NAME }, [1, 2, 3, 4]),
  hostsCluster('named', ['h1', 'h2', 'h3', 'h4'], { ...MAGLEV, ...BY_NAME }),
  hostsCluster('renamed', ['h4', 'h3', 'h2', 'h1'], { ...MAGLEV, ...BY_NAME }),
  { name: 'changing', type: 'EDS', eds_cluster_config: { eds_config: endpoints.source }, ...MAGLEV },
  staticCluster(
    'streams',
    echoes.map(({ port }) => port),
    MAGLEV,
  ),
];
const config = bootstrap({
  listeners: [
    ...Object.entries(routes).map(([name, [cluster, action]]) =>
      httpListener(name, 0, { route_config: routeAllTo(cluster, action) }),
    ),
    httpListener(
      'partly',
      0,
      managerOf([
        routeTo({ prefix: '/hashed' }, 'ring', { hash_policy: [byCookie] }),
        routeTo({ prefix: '/' }, 'ring'),
      ]),
    ),
    tcpListener('wire', 0, { cluster: 'streams', hash_policy: [{ source_ip: {} }] }),
    tcpListener('loose wire', 0, { cluster: 'streams' }),
  ],
  clusters,
});
const baton = await startBaton(t, { config, args: ['--concurrency', '2', '-l', 'warning'] });
const knownPorts = new Map<string, Promise<number>>();
const users = Array.from({ length: 40 }, (_, i) => `user-${i}`);

t.test('each value of a header has a host, on all workers and in the next process', async (t) => {
  for (const name of ['header', 'table']) {
    const hosts = await hostsOf(name);
    t.same(new Set(hosts), new Set(NAMES), `${name}: all hosts have users`);
    for (let round = 0; round < 3; round++) t.same(await hostsOf(name), hosts);
  }
  const next = await startBaton(t, { config, args: ['--concurrency', '1', '-l', 'warning'] });
  t.same(await hostsOf('header', next), await hostsOf('header'));
  t.same(await hostsOf('table', next), await hostsOf('table'));
  await next.stop();
});

t.test('requests without the hashed attribute go to any host', async (t) => {
  for (const name of ['header', 'nothing']) {
    const answers = await Promise.all(users.map(() => ask(name)));
    t.ok(new Set(answers.map(({ body }) => body)).size > 1, name);
  }
});

t.test('a missing cookie is generated, and its requests go to the host of the first one', async (t) => {
  for (let client = 0; client < 5; client++) {
    const { body, headers } = await ask('cookie');
    const made = headers['set-cookie'];
    t.match(made, [/^id="[0-9a-f]{16}"; Max-Age=3600; Path=\/; SameSite=Lax; HttpOnly$/]);
    t.equal(made?.length, 1);
    const cookie = made![0]!.split(';')[0]!;
    for (let round = 0; round < 5; round++) {
      const again = await ask('cookie', '/', { cookie: `other=1; ${cookie}` });
      t.equal(again.body, body);
      t.equal(again.headers['set-cookie'], undefined, 'the client has a cookie');
    }
  }
});

t.test('requests on one connection get the same cookie until they send it', async (t) => {
  const client = await connectRaw(t, await baton.listenerPort('cookie'));
  const request = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
  client.write(request + request);
  const received = await client.readUntil(/(set-cookie: id="[0-9a-f]+"[\s\S]*){2}/i);
  const made = [...received.matchAll(/set-cookie: id="([0-9a-f]+)"/gi)].map(([, value]) => value);
  t.equal(made.length, 2);
  t.equal(made[0], made[1]);
});

t.test('a generated cookie is not sent to other clients', async (t) => {
  const client = await connectRaw(t, await baton.listenerPort('partly'));
  client.write('GET /hashed HTTP/1.1\r\nHost: x\r\n\r\n');
  t.match(await client.readUntil(/\r\n\r\n\w/), /\r\nset-cookie: id=/i);
  client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  t.notMatch(await client.readUntil(/\r\n\r\n\w/), /\r\nset-cookie:/i);
});

t.test('a cluster with another load-balancing policy sets no cookie', async (t) => {
  t.equal((await ask('cookie elsewhere')).headers['set-cookie'], undefined);
});

t.test('hashing by client address uses the address from x-forwarded-for', async (t) => {
  const clients = users.map((_, i) => ({ 'x-forwarded-for': `10.0.0.${i}` }));
  const first = await Promise.all(clients.map((headers) => ask('source', '/', headers)));
  const again = await Promise.all(clients.map((headers) => ask('source', '/', headers)));
  const bodies = first.map(({ body }) => body);
  t.same(new Set(bodies), new Set(NAMES));
  t.same(
    again.map(({ body }) => body),
    bodies,
  );
});

t.test('hashing by query parameter uses the query as the client sent it', async (t) => {
  const first = await Promise.all(users.map((user) => ask('query', `/?a=b&user=${user}`)));
  const again = await Promise.all(users.map((user) => ask('query', `/other?user=${user}`)));
  const byHeader = await hostsOf('header');
  t.same(
    first.map(({ body }) => body),
    byHeader,
    'the same value has the same host in any position',
  );
  t.same(
    again.map(({ body }) => body),
    byHeader,
  );
});

t.test('a matching terminal policy skips the ones after it', async (t) => {
  const byHeader = await hostsOf('header');
  for (const [index, user] of users.entries()) {
    t.equal((await ask('terminal', `/?user=${index}`, { 'x-user': user })).body, byHeader[index]);
  }
});

t.test('hosts have users in proportion to their weights', async (t) => {
  const many = Array.from({ length: 500 }, (_, i) => `client-${i}`);
  const counts = { a: 0, b: 0, c: 0, d: 0 };
  for (let at = 0; at < many.length; at += 50) {
    const answers = await Promise.all(many.slice(at, at + 50).map((user) => ask('weighted', '/', { 'x-user': user })));
    for (const { body } of answers) counts[body as 'a']++;
  }
  for (const [index, name] of NAMES.entries()) {
    const share = counts[name as 'a'] / 500;
    t.ok(Math.abs(share - (index + 1) / 10) < 0.06, `${name}: ${share}`);
  }
});

t.test('hosts hashed by hostname keep their users when their addresses change', async (t) => {
  const hosts = await hostsOf('named');
  const swapped: Record<string, string> = { a: 'd', b: 'c', c: 'b', d: 'a' };
  t.same(
    await hostsOf('renamed'),
    hosts.map((host) => swapped[host]),
  );
});

t.test('when a host is removed its users move and the others stay; when it is added again, they return', async (t) => {
  const before = await hostsOf('changing');
  assigned(ports.slice(1));
  await baton.waitForStat('cluster.changing.membership_total', 3);
  const without = await settled('changing', (hosts) => !hosts.includes('a'));
  const moved = before.filter((host, index) => host !== 'a' && host !== without[index]).length;
  t.ok(moved <= 4, `${moved} others moved`);
  assigned(ports);
  t.same(await settled('changing', (hosts) => hosts.includes('a')), before);
});

t.test('a retry goes to the same host, unless the policy avoids previous hosts', async (t) => {
  const hosts = await hostsOf('header');
  for (const [index, user] of users.slice(0, 12).entries()) {
    const broken = { 'x-user': user, 'x-broken': hosts[index]! };
    t.equal((await ask('retried', '/', broken)).status, 503);
    const elsewhere = await ask('retried elsewhere', '/', broken);
    t.equal(elsewhere.status, 200);
    t.not(elsewhere.body, hosts[index]);
  }
});

t.test('stats describe the shares of hosts in rings and tables', async (t) => {
  t.match(await baton.stats('cluster.ring.ring_hash_lb.'), {
    size: 1024,
    min_hashes_per_host: 256,
    max_hashes_per_host: 256,
  });
  t.match(await baton.stats('cluster.weighted.ring_hash_lb.'), {
    size: 65_540,
    min_hashes_per_host: 6554,
    max_hashes_per_host: 26_216,
  });
  t.match(await baton.stats('cluster.maglev.maglev_lb.'), { min_entries_per_host: 16384, max_entries_per_host: 16385 });
  t.same(await baton.stats('cluster.robin.ring_hash_lb.'), {});
});

t.test('TCP connections of one client address go to one host', async (t) => {
  const clients = Array.from({ length: 20 }, (_, i) => `127.0.1.${i + 1}`);
  const connections = async (name: string) => {
    const port = await baton.listenerPort(name);
    return Promise.all(clients.map((localAddress) => text(connect({ host: '127.0.0.1', port, localAddress }))));
  };
  const hosts = await connections('wire');
  t.ok(new Set(hosts).size > 1);
  t.same(await connections('wire'), hosts);
  t.notSame(await connections('loose wire'), await connections('loose wire'), 'without a policy any host is used');
});

async function ask(listener: string, path = '/', headers: Record<string, string> = {}, of = baton) {
  return httpRequest(await portOf(listener, of), path, { headers });
}

/** Ports of listeners do not change: thousands of requests need not look them up. */
function portOf(listener: string, of: BatonProcess): Promise<number> {
  const key = `${of.pid} ${listener}`;
  const known = knownPorts.get(key) ?? of.listenerPort(listener);
  knownPorts.set(key, known);
  return known;
}

/** Returns the host that answers each user. */
async function hostsOf(listener: string, of = baton): Promise<string[]> {
  const answers = await Promise.all(users.map((user) => ask(listener, '/', { 'x-user': user }, of)));
  return answers.map(({ body }) => body);
}

/** The same, once all workers have the expected hosts: each connection goes to any worker. */
function settled(listener: string, isMeant: (hosts: string[]) => boolean): Promise<string[]> {
  return waitFor(
    async () => {
      const rounds = [await hostsOf(listener), await hostsOf(listener), await hostsOf(listener)];
      return rounds.every((hosts) => isMeant(hosts) && hosts.join() === rounds[0]!.join()) ? rounds[0] : undefined;
    },
    { what: 'hosts that all workers agree on' },
  );
}

function hostsCluster(name: string, hostnames: string[], more: Config, weights = [1, 1, 1, 1]): Config {
  const lb_endpoints = ports.map((port, index) => ({
    endpoint: { address: loopback(port), hostname: hostnames[index] },
    load_balancing_weight: weights[index],
  }));
  return { ...staticCluster(name, [], more), load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints }] } };
}
