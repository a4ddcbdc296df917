// Inline routes of a connection manager: a new table is built in steps beside the current one and replaces it at once.

import t from 'tap';
import { runSync } from '../../../../src/common/time/next-turn.js';
import type { RouteConfiguration } from '../../../../src/config/generated/api.js';
import type { WorkerContext } from '../../../../src/extensions/factories.js';
import { InlineRoutes } from '../../../../src/extensions/filters/network/http-connection-manager/inline-routes.js';
import { Runtime } from '../../../../src/runtime/runtime.js';
import { ClusterManager } from '../../../../src/upstream/cluster-manager.js';
import { requestHead } from '../../../http/routing/heads.js';

function routesTo(cluster: string, count: number): RouteConfiguration {
  const routes = [{ match: { prefix: '/' }, route: { cluster } }];
  const virtual_hosts = Array.from({ length: count }, (_, i) => ({ name: `${i}`, domains: [`${i}.com`], routes }));
  return { name: 'routes', virtual_hosts };
}

function inlineRoutes(): InlineRoutes {
  const context = { clusters: new ClusterManager(undefined as never), runtime: new Runtime() } as WorkerContext;
  const routes = new InlineRoutes({ list: [], signature: '' }, context, 'chain 1');
  runSync(routes.prepare(routesTo('one', 1000)))();
  return routes;
}

function clusterOf({ current }: InlineRoutes): string | undefined {
  return current.match(requestHead('GET /', 'Host: 999.com'), 0)?.clusterName;
}

t.test('new routes are built one per step and become visible together', async (t) => {
  const routes = inlineRoutes();
  const steps = routes.prepare(routesTo('two', 1000));
  let count = 0;
  let step = steps.next();
  for (; step.done !== true; step = steps.next()) count++;
  t.equal(count, 1000);
  t.equal(clusterOf(routes), 'one');
  step.value();
  t.equal(clusterOf(routes), 'two');
});

t.test('unchanged virtual hosts are not rebuilt', async (t) => {
  const routes = inlineRoutes();
  const { virtual_hosts: hosts = [] } = routesTo('two', 1000);
  runSync(routes.prepare({ name: 'routes', virtual_hosts: hosts }))();
  const routeOf = (host: string) => routes.current.match(requestHead('GET /', `Host: ${host}`), 0);
  const kept = routeOf('998.com');
  const other = routesTo('three', 1000).virtual_hosts![999]!;
  runSync(routes.prepare({ name: 'routes', virtual_hosts: hosts.with(999, other) }))();
  t.equal(routeOf('998.com'), kept);
  t.equal(clusterOf(routes), 'three');
});

t.test('invalid routes change nothing', async (t) => {
  const routes = inlineRoutes();
  const body = { filename: '/nonexistent/file' };
  const bad = { match: { prefix: '/' }, direct_response: { status: 200, body } };
  const steps = routes.prepare({ virtual_hosts: [{ name: 'v', domains: ['*'], routes: [bad] }] });
  t.throws(() => steps.next(), { message: /nonexistent/ });
  t.equal(clusterOf(routes), 'one');
});
