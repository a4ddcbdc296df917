// weighted_clusters.header_name: a header has the random number that chooses the cluster. All results are Envoy's.

import t from 'tap';
import { besideEnvoy } from '../../harness/envoy.js';
import { bootstrap, httpListener, startBaton, startUpstream, staticCluster } from '../../harness/index.js';
import { managerOf, routeTo, startProxy } from '../proxy.js';

besideEnvoy('the number modulo the sum of weights chooses the cluster', async (t, program) => {
  const { port } = await startUpstream(t, (request, answer) => void answer.end(request.headers['x-to']));
  const names = ['one', 'two', 'three'];
  const clusters = names.map((name, index) => ({
    name,
    weight: [10, 0, 20][index],
    request_headers_to_add: [{ header: { key: 'x-to', value: name } }],
  }));
  const { get } = await startProxy(t, {
    ...program,
    listeners: {
      all: managerOf([{ match: { prefix: '/' }, route: { weighted_clusters: { clusters, header_name: 'x-random' } } }]),
    },
    clusters: names.map((name) => staticCluster(name, port)),
  });
  for (const [number, expected] of [
    ['0', 'one'],
    ['9', 'one'],
    ['10', 'three'],
    ['29', 'three'],
    ['30', 'one'],
    ['18446744073709551615', 'three'],
  ] as const) {
    t.equal((await get('/', { headers: { 'x-random': number } })).body, expected, number);
  }
  for (const number of ['', '-1', 'x', '1.5', '18446744073709551616'])
    t.match(
      (await get('/', { headers: { 'x-random': number } })).body,
      /^(one|three)$/,
      `a random one for '${number}'`,
    );
});

t.test('copies of requests have no spans', async (t) => {
  const policies = (trace_sampled: boolean) => [{ cluster: 'a', trace_sampled }];
  const routes = [true, false].map((is) => routeTo({ prefix: '/' }, 'a', { request_mirror_policies: policies(is) }));
  const config = bootstrap({
    listeners: [httpListener('in', 0, managerOf(routes))],
    clusters: [staticCluster('a', 1)],
  });
  const baton = await startBaton(t, { config, args: ['--mode', 'validate'], wait: 'spawned' });
  t.equal((await baton.exited).code, 1);
  t.match(baton.stderr, 'routes[0].route.request_mirror_policies[0].trace_sampled');
  t.notMatch(baton.stderr, 'routes[1].route');
});
