// How long a route configuration of many virtual hosts keeps a thread from its other work: on the primary, which packs it, and on a
// worker, which unpacks and builds it. `npm run build && node dist/scripts/bench/route-updates.js [hosts] [routes of each]`

import type { RouteConfiguration } from '../../src/config/generated/api.js';
import type { WorkerPort } from '../../src/extensions/factories.js';
import { rdsKey } from '../../src/http/routing/route-keys.js';
import { Runtime } from '../../src/runtime/runtime.js';
import { ClusterManager } from '../../src/upstream/cluster-manager.js';
import { packRoutes } from '../../src/worker/packed-routes.js';
import { RouteTables } from '../../src/worker/route-tables.js';

const HOSTS = Number(process.argv[2] ?? 10_000);
const ROUTES = Number(process.argv[3] ?? 1);
const ROUNDS = 15;

const SOURCE = { ads: {} };
const NAME = 'routes';

function configuration(round: number): RouteConfiguration {
  const routes = Array.from({ length: ROUTES }, (_, route) => ({
    match: { prefix: `/${route}` },
    route: { cluster: `cluster-${route}`, timeout: `${round + 1}s` },
  }));
  const virtual_hosts = Array.from({ length: HOSTS }, (_, host) => ({
    name: `host-${host}`,
    domains: [`host-${host}.example.com`, `www.host-${host}.example.com`],
    routes,
  }));
  return { name: NAME, virtual_hosts };
}

const port: WorkerPort = { worker: 0, state: undefined, onState: undefined, send: () => {} };
const thread = { clusters: new ClusterManager(undefined as never), runtime: new Runtime() };
const tables = new RouteTables(thread, port);
const key = rdsKey(SOURCE, NAME);
const packing: number[] = [];
const whole: number[] = [];
const steps: number[] = [];

tables.apply({ routes: [{ id: 1, key, config: packRoutes({ name: NAME }) }], routeScopes: [] });
const source = tables.rds({ config_source: SOURCE, route_config_name: NAME }, { list: [], signature: '' });
for (let round = 0; round < ROUNDS; round++) {
  const given = configuration(round);
  const packed = timed(packing, () => packRoutes(given));
  const snapshot = { routes: [{ id: 1, key, config: packed }], routeScopes: [] };
  let sum = 0;
  const preparation = tables.prepare(snapshot);
  for (let isDone = false; !isDone; ) {
    isDone = timed(steps, () => preparation.next().done === true);
    sum += steps.at(-1)!;
  }
  timed(steps, () => tables.apply(snapshot));
  whole.push(sum + steps.at(-1)!);
}
console.log(`${HOSTS} virtual hosts, ${ROUTES} route(s) each, of '${source.current.name}'`);
report('primary: packing, once for all workers', packing);
report('worker: all steps of an update', whole);
report(`worker: a step, ${steps.length / ROUNDS} of them`, steps);

function timed<Result>(times: number[], act: () => Result): Result {
  const start = cpuMs();
  const result = act();
  times.push(cpuMs() - start);
  return result;
}

function report(what: string, times: readonly number[]): void {
  const sorted = [...times].sort((a, b) => a - b);
  const at = (share: number) => sorted[Math.floor((sorted.length - 1) * share)]!.toFixed(2);
  console.log(`${what.padEnd(48)} median ${at(0.5)} ms, 99 of 100 ${at(0.99)} ms, worst ${at(1)} ms`);
}

/** CPU time, not time: other processes may keep the machine busy. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
