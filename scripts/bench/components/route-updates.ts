// How long a route configuration of many virtual hosts blocks a thread: on the primary, which packs it, and on a worker, which
// unpacks and builds it. `npm run build && node dist/scripts/bench/components/route-updates.js [hosts] [routes of each]`

import type { RouteConfiguration } from '../../../src/config/generated/api.js';
import type { WorkerPort } from '../../../src/extensions/factories.js';
import { rdsKey } from '../../../src/http/routing/tables/route-keys.js';
import { Runtime } from '../../../src/runtime/runtime.js';
import { ClusterManager } from '../../../src/upstream/cluster-manager.js';
import { type PackedRoutes, packRoutes } from '../../../src/worker/messages/packed-routes.js';
import { RouteTables } from '../../../src/worker/routes/route-tables.js';
import { cpuMs } from './cpu-time.js';

const HOSTS = Number(process.argv[2] ?? 10_000);
const ROUTES = Number(process.argv[3] ?? 1);
const ROUNDS = 15;

const SOURCE = { ads: {} };
const NAME = 'routes';

/** Returns a configuration in which the timeouts of `changed` virtual hosts depend on the round. */
function configuration(round: number, changed: number): RouteConfiguration {
  const routesOf = (timeout: number) =>
    Array.from({ length: ROUTES }, (_, route) => ({
      match: { prefix: `/${route}` },
      route: { cluster: `cluster-${route}`, timeout: `${timeout}s` },
    }));
  const virtual_hosts = Array.from({ length: HOSTS }, (_, host) => ({
    name: `host-${host}`,
    domains: [`host-${host}.example.com`, `www.host-${host}.example.com`],
    routes: routesOf(host < changed ? round + 1 : 0),
  }));
  return { name: NAME, virtual_hosts };
}

const port: WorkerPort = { worker: 0, state: undefined, onState: undefined, send: () => {} };
const thread = {
  clusters: new ClusterManager(undefined as never),
  runtime: new Runtime(),
  routeCounts: { of: () => undefined },
};
const tables = new RouteTables(thread, port);
const key = rdsKey(SOURCE, NAME);

tables.apply({ routes: [{ id: 1, key, config: packRoutes({ name: NAME }) }], routeScopes: [] });
const source = tables.rds({ config_source: SOURCE, route_config_name: NAME }, { list: [], signature: '' });
let previous: PackedRoutes | undefined;
console.log(`${HOSTS} virtual hosts, ${ROUTES} route(s) each`);
measure('all change', HOSTS);
measure('one changes', 1);

function measure(what: string, changed: number): void {
  const packing: number[] = [];
  const whole: number[] = [];
  const steps: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const given = configuration(round, changed);
    const packed = timed(packing, () => packRoutes(given, previous));
    previous = packed;
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
  if (source.current.name !== NAME) throw new Error('the routes are missing');
  report(`${what}, primary: packing, once for all workers`, packing);
  report(`${what}, worker: all steps of an update`, whole);
  report(`${what}, worker: a step, ${Math.round(steps.length / ROUNDS)} of them`, steps);
}

function timed<Result>(times: number[], act: () => Result): Result {
  const start = cpuMs();
  const result = act();
  times.push(cpuMs() - start);
  return result;
}

function report(what: string, times: readonly number[]): void {
  const sorted = [...times].sort((a, b) => a - b);
  const at = (share: number) => sorted[Math.floor((sorted.length - 1) * share)]!.toFixed(2);
  console.log(`${what.padEnd(52)} median ${at(0.5)} ms, p99 ${at(0.99)} ms, worst ${at(1)} ms`);
}
