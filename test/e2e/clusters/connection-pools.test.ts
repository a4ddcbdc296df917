// The circuit breaker of connection pools (max_connection_pools). The expected results are those of Envoy 1.40.

import { besideEnvoy } from '../harness/envoy.js';
import { startUpstream, staticCluster } from '../harness/index.js';
import { managerOf, routeTo, startProxy } from '../http/proxy.js';

besideEnvoy('a request that needs one pool too many fails', async (t, program) => {
  const one = await startUpstream(t, (_, response) => void response.end('one'));
  const two = await startUpstream(t, (_, response) => void response.end('two'));
  const thresholds = [{ max_connection_pools: 1, track_remaining: true }];
  const { baton, get } = await startProxy(t, {
    ...program,
    listeners: { in: managerOf([routeTo({ prefix: '/' }, 'api')]) },
    clusters: [staticCluster('api', [one.port, two.port], { circuit_breakers: { thresholds } })],
  });
  const answers = [];
  for (let sent = 0; sent < 4; sent++) answers.push((await get('/')).body);
  // The hosts take turns; the first one has the pool.
  const [first] = answers.filter((answer) => answer !== 'no healthy upstream');
  t.same(answers.sort(), ['no healthy upstream', 'no healthy upstream', first, first].sort());
  await baton.waitForStats({
    'cluster.api.upstream_cx_pool_overflow': 2,
    'cluster.api.upstream_cx_none_healthy': 0,
    'cluster.api.upstream_cx_total': 1,
    'cluster.api.circuit_breakers.default.cx_pool_open': 1,
    'cluster.api.circuit_breakers.default.remaining_cx_pools': 0,
  });
  // Without its connection the pool is not in use.
  for (const { sockets } of [one, two]) for (const socket of sockets) socket.end();
  await baton.waitForStats({
    'cluster.api.circuit_breakers.default.cx_pool_open': 0,
    'cluster.api.circuit_breakers.default.remaining_cx_pools': 1,
    'cluster.api.upstream_cx_active': 0,
  });
  t.not((await get('/')).body, 'no healthy upstream');
});
