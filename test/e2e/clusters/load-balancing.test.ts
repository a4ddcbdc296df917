// How a cluster's requests are distributed over its hosts.

import type { ServerResponse } from 'node:http';
import t from 'tap';
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
  waitFor,
} from '../harness/index.js';

/** Each answers with its own name; requests for /hang are held until the test ends. */
const hanging: ServerResponse[] = [];
const upstreams = await Promise.all(
  ['a', 'b', 'c'].map((name) =>
    startUpstream(t, (request, response) => {
      if (request.url === '/hang') hanging.push(response);
      else response.end(name);
    }),
  ),
);
const [a, b, c] = upstreams.map(({ port }) => port) as [number, number, number];

const clusters: Config[] = [
  staticCluster('robin', [a, b, c]),
  weighted('weighted-robin', 'ROUND_ROBIN', [1, 2, 3]),
  staticCluster('random', [a, b, c], { lb_policy: 'RANDOM' }),
  staticCluster('least', [a, b], { lb_policy: 'LEAST_REQUEST' }),
  staticCluster('chosen', [a, b, c], {
    lb_policy: 'LOAD_BALANCING_POLICY_CONFIG',
    load_balancing_policy: {
      policies: [
        policy('mine', 'acme.v1.Balancer', { from: 'another proxy' }),
        policy('by-locality', 'envoy.extensions.load_balancing_policies.wrr_locality.v3.WrrLocality'),
        policy('turns', 'envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin'),
        policy('chance', 'envoy.extensions.load_balancing_policies.random.v3.Random'),
      ],
    },
  }),
  weighted('weighted-least', 'LEAST_REQUEST', [1, 2, 3]),
  health('unhealthy', ['HEALTHY', 'UNHEALTHY', 'DRAINING'], { healthy_panic_threshold: { value: 0 } }),
  health('degraded', ['HEALTHY', 'DEGRADED', 'UNHEALTHY']),
  health('panic', ['UNHEALTHY', 'UNHEALTHY', 'UNHEALTHY']),
  health('no-panic', ['UNHEALTHY', 'UNHEALTHY', 'UNHEALTHY'], { healthy_panic_threshold: { value: 0 } }),
];
const baton = await startBaton(t, {
  config: bootstrap({
    listeners: clusters.map(({ name }) =>
      // Requests for /hang stay open until the test releases them, however long that takes.
      httpListener(name as string, 0, { route_config: routeAllTo(name as string, { timeout: '0s' }) }),
    ),
    clusters,
  }),
});

t.test('ROUND_ROBIN rotates', async (t) => {
  const order = await answers('robin', 30);
  t.same(counts(order), { a: 10, b: 10, c: 10 });
  for (let index = 3; index < order.length; index++) t.equal(order[index], order[index - 3]);
});

t.test('load_balancing_policy takes precedence, and its first policy that Baton implements is used', async (t) => {
  const order = await answers('chosen', 30);
  t.same(counts(order), { a: 10, b: 10, c: 10 });
  for (let index = 3; index < order.length; index++) t.equal(order[index], order[index - 3]);
});

t.test('weighted ROUND_ROBIN gives each host exactly its share, interleaved', async (t) => {
  const order = await answers('weighted-robin', 60);
  t.same(counts(order), { a: 10, b: 20, c: 30 });
  // Each round of six holds each host's share: the heavy host does not get its requests in one burst.
  for (let at = 0; at < order.length; at += 6) t.same(counts(order.slice(at, at + 6)), { a: 1, b: 2, c: 3 });
});

t.test('RANDOM is even in the long run, and not a rotation', async (t) => {
  const order = await answers('random', 600);
  const spread = counts(order);
  // One third each, within five standard deviations.
  for (const name of ['a', 'b', 'c']) t.ok(Math.abs(spread[name]! - 200) < 58, `${name}: ${spread[name]} of 600`);
  t.ok(
    order.some((each, index) => index > 0 && each === order[index - 1]),
    'the same host twice in a row',
  );
});

t.test('LEAST_REQUEST spares a host that is slow to answer', async (t) => {
  const port = await baton.listenerPort('least');
  const busy: Promise<unknown>[] = [];
  // One after the other: a request that still waits for its connection does not count for a host.
  for (let count = 1; count <= 8; count++) {
    busy.push(httpRequest(port, '/hang', { deadlineMs: 60_000 }).catch(() => {}));
    await waitFor(() => hanging.length === count, { what: 'a host that has the request' });
  }
  const held = upstreams.map(
    ({ server }) => hanging.filter((each) => each.socket?.localPort === portOf(server)).length,
  );
  t.ok(held[0]! > 0 && held[1]! > 0, `requests in flight are spread: ${held}`);
  // Release one of the two, so that the same host holds all requests.
  for (const response of hanging) if (response.socket?.localPort === a) response.end('free');
  await baton.waitForStat('cluster.least.upstream_rq_active', held[1]!);
  const spread = counts(await answers('least', 200));
  // A quarter of the random pairs consist of the busy host twice.
  t.ok(spread['b']! < 85, `the busy host got ${spread['b']} of 200`);
  for (const response of hanging) response.end('free');
  await Promise.all(busy);
});

t.test('weighted LEAST_REQUEST follows the weights when hosts are idle', async (t) => {
  t.same(counts(await answers('weighted-least', 60)), { a: 10, b: 20, c: 30 });
});

t.test('UNHEALTHY and DRAINING hosts get no requests', async (t) => {
  t.same(counts(await answers('unhealthy', 12)), { a: 12 });
});

t.test('DEGRADED hosts get what the healthy ones cannot take, and are counted separately', async (t) => {
  const { a, b, c } = counts(await answers('degraded', 60));
  t.ok(a! > 0 && b! > 0 && c === undefined, `${a}, ${b} and ${c} of 60`);
  t.match(await baton.stats('cluster.degraded.membership_'), { total: 3, healthy: 1, degraded: 1 });
  t.match(await baton.stats('cluster.unhealthy.membership_'), { total: 3, healthy: 1, degraded: 0 });
});

t.test('when no host is healthy all hosts get requests: panic', async (t) => {
  t.same(counts(await answers('panic', 30)), { a: 10, b: 10, c: 10 });
  t.ok((await baton.stat('cluster.panic.lb_healthy_panic'))! > 0);
});

t.test('without panic mode requests fail with "no healthy upstream"', async (t) => {
  const { status, body } = await httpRequest(await baton.listenerPort('no-panic'), '/');
  t.equal(status, 503);
  t.equal(body, 'no healthy upstream');
});

async function answers(listener: string, count: number): Promise<string[]> {
  const port = await baton.listenerPort(listener);
  const all: string[] = [];
  for (let index = 0; index < count; index++) all.push((await httpRequest(port, '/')).body);
  return all;
}

function counts(names: readonly string[]): Record<string, number> {
  const result: Record<string, number> = {};
  for (const name of [...names].sort()) result[name] = (result[name] ?? 0) + 1;
  return result;
}

function endpoint(port: number): Config {
  return { endpoint: { address: loopback(port) } };
}

function weighted(name: string, policy: string, weights: readonly number[]): Config {
  const lb_endpoints = [a, b, c].map((port, index) => ({ ...endpoint(port), load_balancing_weight: weights[index] }));
  const load_assignment = { cluster_name: name, endpoints: [{ lb_endpoints }] };
  return { ...staticCluster(name, []), lb_policy: policy, load_assignment };
}

function health(name: string, statuses: readonly string[], common: Config = {}): Config {
  const lb_endpoints = [a, b, c].map((port, index) => ({ ...endpoint(port), health_status: statuses[index] }));
  const load_assignment = { cluster_name: name, endpoints: [{ lb_endpoints }] };
  return { ...staticCluster(name, []), common_lb_config: common, load_assignment };
}

function portOf(server: { address(): unknown }): number {
  return (server.address() as { port: number }).port;
}

function policy(name: string, message: string, fields: Config = {}): Config {
  return { typed_extension_config: { name, typed_config: { '@type': `type.googleapis.com/${message}`, ...fields } } };
}
