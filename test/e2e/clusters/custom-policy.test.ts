// A registered load-balancing policy works without changes elsewhere.

import type { ServerResponse } from 'node:http';
import t from 'tap';
import {
  bootstrap,
  httpListener,
  httpRequest,
  routeAllTo,
  startBaton,
  startUpstream,
  staticCluster,
  UNBUNDLED,
  waitFor,
} from '../harness/index.js';

/** Requests held at each host until the test ends. */
const held: ServerResponse[][] = [[], [], []];
const ports = await Promise.all(
  held.map(async (responses) => (await startUpstream(t, (_request, response) => responses.push(response))).port),
);

function cluster(name: string, fields: object) {
  const typed_config = {
    '@type': 'type.googleapis.com/envoy.extensions.load_balancing_policies.pick_first.v3.PickFirst',
    ...fields,
  };
  return staticCluster(name, ports, {
    load_balancing_policy: { policies: [{ typed_extension_config: { name: 'acme.filling', typed_config } }] },
  });
}

const clusters = [cluster('forward', {}), cluster('reverse', { shuffle_address_list: true })];
const baton = await startBaton(t, {
  program: UNBUNDLED,
  nodeArgs: ['--import', new URL('./filling-policy.js', import.meta.url).href],
  config: {
    ...bootstrap({
      listeners: clusters.map(({ name }) =>
        httpListener(name as string, 0, { route_config: routeAllTo(name as string, { timeout: '0s' }) }),
      ),
      clusters,
    }),
    layered_runtime: { layers: [{ name: 'admin', admin_layer: {} }] },
  },
});

/** Sends requests, each after its predecessor has reached a host; returns how many each host holds. */
async function fill(listener: string, requests: number): Promise<number[]> {
  const port = await baton.listenerPort(listener);
  const counts = () => held.map(({ length }) => length);
  const sum = () => held.flat().length;
  for (let sent = 0; sent < requests; sent++) {
    const before = sum();
    void httpRequest(port, '/', { deadlineMs: 60_000 }).catch(() => {});
    await waitFor(() => sum() > before, { what: 'a host that has the request' });
  }
  const result = counts();
  for (const response of held.flatMap((responses) => responses.splice(0))) response.end();
  await baton.waitForStat(`cluster.${listener}.upstream_rq_active`, 0);
  return result;
}

t.test("the policy's load balancers choose hosts by its settings and by the request counts", async (t) => {
  t.same(await fill('forward', 5), [2, 2, 1]);
  t.same(await fill('reverse', 3), [0, 1, 2]);
});

t.test("the policy's gauges are stats of the cluster", async (t) => {
  t.equal(await baton.stat('cluster.forward.filling.hosts'), 3);
});

t.test("runtime changes the policy's parameter", async (t) => {
  await baton.admin('/runtime_modify?fill.requests=1', { method: 'POST' });
  await waitFor(async () => (await fill('forward', 2))[1] === 1, { what: 'load balancers with the new number' });
  t.same(await fill('forward', 3), [1, 1, 1]);
});
