// The hash of a request: the policy of a cluster replaces that of its routes, and the hash may choose among weighted clusters. The expected
// results are those of Envoy 1.40.

import t, { type Test } from 'tap';
import { besideEnvoy, type ProxyProgram } from '../harness/envoy.js';
import {
  bootstrap,
  type Config,
  httpListener,
  httpRequest,
  startBaton,
  startUpstream,
  staticCluster,
} from '../harness/index.js';
import { managerOf, routeTo } from '../http/proxy.js';

const NAMES = ['a', 'b', 'c', 'd'];
const upstreams = await Promise.all(
  NAMES.map((name) => startUpstream(t, (_request, response) => void response.end(name))),
);
const ports = upstreams.map(({ port }) => port);
const OPTIONS = 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions';
const byHeader = (name: string): Config => ({ header: { header_name: name } });

besideEnvoy('the hash policy of a cluster replaces that of routes', async (t, program) => {
  const proxy = await start(t, program, [
    hashed('header', byHeader('x-c')),
    hashed('cookie', { cookie: { name: 'sid', ttl: '10s' } }),
  ]);
  const distinct = async (headers: Record<string, string>) => {
    const found = new Set<string>();
    for (let count = 0; count < 30; count++) found.add((await proxy('/header', headers)).body);
    return found.size;
  };
  t.equal(await distinct({ 'x-c': '1' }), 1);
  t.ok((await distinct({ 'x-r': '1' })) > 1, 'the policy of the route has no effect');
  t.equal((await proxy('/header', { 'x-c': '1', 'x-r': '2' })).body, (await proxy('/header', { 'x-c': '1' })).body);
  const { headers } = await proxy('/cookie', {});
  t.match(String(headers['set-cookie']), /^sid="[0-9a-f]{16}"; Max-Age=10; HttpOnly$/);
  t.equal((await proxy('/cookie', { cookie: 'sid=1' })).headers['set-cookie'], undefined);
});

besideEnvoy('with use_hash_policy requests with the same hash get the same weighted cluster', async (t, program) => {
  const proxy = await start(
    t,
    program,
    [0, 1, 2].map((index) => staticCluster(NAMES[index]!, ports[index]!)),
  );
  let all = '';
  for (let count = 0; count < 30; count++) all += (await proxy('/weighted', { 'x-r': String(count) })).body;
  t.equal(all, 'bbccccacccbccacacccbcccbcccbcc', 'the cluster of the hash modulo the sum of the weights');
  const others = new Set<string>();
  for (let count = 0; count < 60; count++) others.add((await proxy('/weighted', {})).body);
  t.ok(others.size > 1, 'without a hash the choice is random');
  const { body, headers } = await proxy('/weighted-cookie', { cookie: 'z=1' });
  t.equal(body, (await proxy('/weighted-cookie', { cookie: 'z=1' })).body);
  t.equal(headers['set-cookie'], undefined);
  t.equal((await proxy('/weighted-cookie', {})).headers['set-cookie'], undefined);
});

t.test('a hash policy that cannot be used is refused with its place', async (t) => {
  const config = bootstrap({ listeners: [], clusters: [hashed('bad', { cookie: { name: 'a b' } })] });
  const baton = await startBaton(t, { config, args: ['--mode', 'validate'], wait: 'spawned' });
  t.equal((await baton.exited).code, 1);
  t.match(baton.stderr, /hash_policy\[0\]\.cookie\.name: 'a b' is not a valid cookie name/);
});

type Send = (path: string, headers: Record<string, string>) => ReturnType<typeof httpRequest>;

async function start(t: Test, program: ProxyProgram, clusters: Config[]): Promise<Send> {
  const weights = [10, 20, 70].map((weight, index) => ({ name: NAMES[index], weight }));
  const weighted = (hash_policy: Config[]) => ({
    hash_policy,
    weighted_clusters: { clusters: weights, use_hash_policy: true },
  });
  const routes = clusters.some(({ name }) => name === 'a')
    ? [
        { match: { prefix: '/weighted-cookie' }, route: weighted([{ cookie: { name: 'z', ttl: '5s' } }]) },
        { match: { prefix: '/weighted' }, route: weighted([byHeader('x-r')]) },
      ]
    : clusters.map(({ name }) => routeTo({ prefix: `/${name}` }, name as string, { hash_policy: [byHeader('x-r')] }));
  const config = bootstrap({ listeners: [httpListener('all', 0, managerOf(routes))], clusters });
  const baton = await startBaton(t, { ...program, config });
  const port = await baton.listenerPort('all');
  return (path, headers) => httpRequest(port, path, { headers });
}

function hashed(name: string, policy: Config): Config {
  const options = {
    '@type': `type.googleapis.com/${OPTIONS}`,
    explicit_http_config: { http_protocol_options: {} },
    hash_policy: [policy],
  };
  const cluster = staticCluster(name, ports, { lb_policy: 'MAGLEV' });
  return { ...cluster, typed_extension_protocol_options: { [OPTIONS]: options } };
}
