// The stats of routes: held while their routes are in use, or prepared for use.

import t from 'tap';
import type { RouteConfiguration } from '../../../src/config/generated/api.js';
import { HeldRouteStats } from '../../../src/server/routes/held-route-stats.js';
import { WorkerScopes } from '../../../src/server/workers/worker-scopes.js';
import { StatsStore } from '../../../src/stats/store.js';

function routes(...prefixes: string[]): RouteConfiguration[] {
  const hosts = [{ name: 'v', domains: ['*'], routes: prefixes.map((stat_prefix) => ({ stat_prefix })) }];
  return [{ virtual_hosts: hosts }];
}

function start() {
  const scopes = new WorkerScopes(new StatsStore({ workers: 1 }));
  const stats = new HeldRouteStats({ publish: () => {}, scopes, whenApplied: (callback) => callback() });
  const names = () => Object.keys(scopes.all).map((key) => /route\.(\w+)\./.exec(key)![1]);
  return { names, stats };
}

t.test('routes that are prepared and not used leave nothing behind', async (t) => {
  const { names, stats } = start();
  stats.add(routes('a'));
  for (let left = 3; left > 0; left--) stats.prepare(routes('a', `b${left}`));
  t.strictSame(names(), ['a', 'b1']);
  const use = stats.prepare(routes('c'));
  t.strictSame(names(), ['a', 'c']);
  use();
  stats.keepLatest();
  t.strictSame(names(), ['c']);
  stats.prepare([]);
  t.strictSame(names(), ['c']);
  stats.prepare(routes('d'));
  stats.close();
  t.strictSame(names(), []);
});

t.test('routes without stats end those of earlier ones', async (t) => {
  const { names, stats } = start();
  stats.prepare(routes())();
  t.strictSame(names(), []);
  stats.prepare(routes('a'))();
  stats.keepLatest();
  stats.prepare(routes())();
  stats.keepLatest();
  t.strictSame(names(), []);
});
