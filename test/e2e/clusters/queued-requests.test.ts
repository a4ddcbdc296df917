// Requests queued for a connection.

import type { ServerResponse } from 'node:http';
import t from 'tap';
import { httpRequest, startUpstream, staticCluster, waitFor } from '../harness/index.js';
import { managerOf, routeTo, startProxy } from '../http/proxy.js';

t.test('a request refused by a circuit breaker leaves its connection to the requests queued behind it', async (t) => {
  const held: ServerResponse[] = [];
  const answer = (request: { url?: string | undefined }, response: ServerResponse): void => {
    if (request.url === '/held') held.push(response);
    else response.end('fine');
  };
  const hosts = [await startUpstream(t, answer), await startUpstream(t, answer)];
  const ports = hosts.map(({ port }) => port);
  const limits = { circuit_breakers: { thresholds: [{ max_connections: 2, max_requests: 1 }] } };
  const proxy = await startProxy(t, {
    listeners: { a: managerOf([routeTo({ prefix: '/' }, 'two')]) },
    clusters: [staticCluster('two', ports, limits)],
  });
  const first = proxy.get('/held');
  await waitFor(() => held.length === 1);
  // Four go to the free host, which gets the last connection; no request may start on it.
  const statuses: number[] = [];
  const others = Array.from({ length: 8 }, async () => {
    statuses.push((await httpRequest(proxy.port, '/')).status);
  });
  await waitFor(() => statuses.length === 4, { what: 'four refusals' });
  t.same(statuses, [503, 503, 503, 503]);
  held[0]!.end('at last');
  await Promise.all([first, ...others]);
  t.same(statuses.slice(4), [200, 200, 200, 200]);
  await proxy.baton.waitForStat('cluster.two.upstream_rq_pending_active', 0);
  await proxy.baton.waitForStat('cluster.two.upstream_rq_active', 0);
});
