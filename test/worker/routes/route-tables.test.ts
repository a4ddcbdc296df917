// Dynamic routes of a worker: new requests use them at once.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { RouteConfiguration } from '../../../src/config/generated/api.js';
import type { RouteFilters, WorkerPort } from '../../../src/extensions/factories.js';
import type { RouteSource } from '../../../src/http/manager-context.js';
import { keyOfScopedRoutes, rdsKey } from '../../../src/http/routing/tables/route-keys.js';
import { Runtime } from '../../../src/runtime/runtime.js';
import { ClusterManager } from '../../../src/upstream/cluster-manager.js';
import { BATCH, type PackedRoutes, packRoutes } from '../../../src/worker/messages/packed-routes.js';
import { RouteTables } from '../../../src/worker/routes/route-tables.js';
import { waitFor } from '../../e2e/harness/index.js';
import { requestHead } from '../../http/routing/heads.js';

const SOURCE = { ads: {} };
const RDS = { config_source: SOURCE, route_config_name: 'routes' };
const PLAIN: RouteFilters = { list: [], signature: '' };
/** Routes return their name. */
const NAMED: RouteFilters = {
  signature: 'named',
  list: [{ name: 'named', compileRouteConfig: (configs) => configs.map((config) => config['@type']) }],
};

function worker() {
  const sent: unknown[] = [];
  const port: WorkerPort = {
    worker: 0,
    state: undefined,
    onState: undefined,
    send: (message) => void sent.push(message),
  };
  const clusters = new ClusterManager(undefined as never);
  const routeCounts = { of: () => undefined };
  const tables = new RouteTables({ clusters, runtime: new Runtime(), routeCounts }, port);
  const apply = (id: number, config: RouteConfiguration | undefined, key = rdsKey(SOURCE, 'routes')) =>
    tables.apply({ routes: [{ id, key, config: config && packRoutes(config) }], routeScopes: [] });
  return { tables, port, sent, apply };
}

function routesTo(cluster: string, domain = '*', more: RouteConfiguration = {}): RouteConfiguration {
  const routes = [{ match: { prefix: '/' }, route: { cluster } }];
  return { name: 'routes', virtual_hosts: [{ name: 'v', domains: [domain], routes }], ...more };
}

function clusterOf({ current }: RouteSource, ...lines: string[]): string | undefined {
  return current.match(requestHead('GET /', 'Host: foo.com', ...lines), 0)?.clusterName;
}

t.test('requests have no route before the first update, and use the last one afterwards', async (t) => {
  const { apply, tables } = worker();
  apply(1, undefined);
  const source = tables.rds(RDS, PLAIN);
  t.equal(clusterOf(source), undefined);
  apply(1, routesTo('one'));
  const began = source.current;
  t.equal(clusterOf(source), 'one');
  apply(1, routesTo('two'));
  t.equal(clusterOf(source), 'two');
  t.equal(clusterOf({ current: began }), 'one', 'a running request keeps its table');
});

t.test('chains with the same filters share a table', async (t) => {
  const { apply, tables } = worker();
  apply(1, routesTo('one', '*', { typed_per_filter_config: { named: { '@type': 'said' } } }));
  const source = tables.rds(RDS, PLAIN);
  t.equal(tables.rds(RDS, PLAIN), source);
  const named = tables.rds(RDS, NAMED);
  t.not(named, source);
  apply(1, routesTo('two', '*', { typed_per_filter_config: { named: { '@type': 'said anew' } } }));
  t.equal(clusterOf(source), 'two');
  t.strictSame(named.current.match(requestHead('GET /'), 0)?.filterConfigs, [['said anew']]);
});

t.test('removed routes stay with their users, and the name is free', async (t) => {
  const { apply, tables } = worker();
  apply(1, routesTo('one'));
  const source = tables.rds(RDS, PLAIN);
  tables.remove({ removedRoutes: [1], removedRouteScopes: [] });
  t.equal(clusterOf(source), 'one');
  apply(2, routesTo('two'));
  t.equal(clusterOf(tables.rds(RDS, PLAIN)), 'two');
  t.equal(clusterOf(source), 'one');
});

t.test('a long table is built in steps, and used once its snapshot is applied', async (t) => {
  const { apply, tables } = worker();
  apply(1, routesTo('one'));
  const source = tables.rds(RDS, PLAIN);
  const long = (cluster: string, count: number): RouteConfiguration => ({
    name: 'routes',
    virtual_hosts: Array.from({ length: count }, (_, index) => ({
      name: `v${index}`,
      domains: [index === 0 ? '*' : `host-${index}.com`],
      routes: [{ match: { prefix: '/' }, route: { cluster } }],
    })),
  });
  const snapshotOf = (config: RouteConfiguration) => ({
    id: 1,
    key: rdsKey(SOURCE, 'routes'),
    config: packRoutes(config),
  });
  t.ok(tables.prepare({ routes: [snapshotOf(long('two', 10))] }).next().done, 'a short one takes no time');
  const snapshot = snapshotOf(long('two', 1000));
  const steps = tables.prepare({ routes: [snapshot] });
  let count = 0;
  while (!steps.next().done) {
    count++;
    t.equal(clusterOf(source), 'one');
  }
  t.ok(count >= 10, `${count} steps`);
  t.equal(clusterOf(source), 'one');
  tables.apply({ routes: [snapshot], routeScopes: [] });
  t.equal(clusterOf(source), 'two');
  apply(1, routesTo('three'));
  t.equal(clusterOf(source), 'three');
});

t.test('routes of unchanged virtual hosts are built once', async (t) => {
  const { apply, tables } = worker();
  const to = (cluster: string, domain: string) => routesTo(cluster, domain).virtual_hosts![0]!;
  const others = Array.from({ length: 200 }, (_, index) => ({ ...to('other', `${index}.com`), name: `v${index}` }));
  let packed: PackedRoutes | undefined;
  const say = (cluster: string, more: RouteConfiguration = {}) => {
    const virtual_hosts = [...others, { ...to(cluster, 'foo.com'), name: 'last' }];
    packed = packRoutes({ name: 'routes', virtual_hosts, ...more }, packed);
    const routes = [{ id: 1, key: rdsKey(SOURCE, 'routes'), config: packed }];
    for (const _ of tables.prepare({ routes }));
    tables.apply({ routes, routeScopes: [] });
  };
  apply(1, undefined);
  const source = tables.rds(RDS, PLAIN);
  const routeOf = (host: string) => source.current.match(requestHead('GET /', `Host: ${host}`), 0);
  say('one');
  const kept = routeOf('0.com');
  t.equal(kept?.clusterName, 'other');
  t.equal(clusterOf(source), 'one');
  say('two');
  t.equal(clusterOf(source), 'two');
  t.equal(routeOf('0.com'), kept, 'the same object');
  say('two', { request_headers_to_remove: ['x-a'] });
  t.not(routeOf('0.com'), kept, 'common settings apply to it, too');
  t.ok(routeOf('0.com')?.requestMutations !== undefined);
});

t.test('the file of a response is read at each update', async (t) => {
  const { tables } = worker();
  const filename = join(t.testdir({ answer: 'first' }), 'answer');
  const answer = { match: { prefix: '/' }, direct_response: { status: 200, body: { filename } } };
  // So many routes form a separate piece.
  const answering = { name: 'answering', domains: ['foo.com'], routes: Array.from({ length: BATCH }, () => answer) };
  const first = packRoutes({ name: 'routes', virtual_hosts: [answering] });
  const key = rdsKey(SOURCE, 'routes');
  tables.apply({ routes: [{ id: 1, key, config: first }], routeScopes: [] });
  const { current: before } = tables.rds(RDS, PLAIN);
  const body = (table: typeof before) =>
    Buffer.from(table.match(requestHead('GET /', 'Host: foo.com'), 0)!.directBody).toString();
  t.equal(body(before), 'first');
  writeFileSync(filename, 'second');
  const more = { ...routesTo('one', 'more.com').virtual_hosts![0]!, name: 'more' };
  const second = packRoutes({ name: 'routes', virtual_hosts: [answering, more] }, first);
  tables.apply({ routes: [{ id: 1, key, config: second }], routeScopes: [] });
  t.equal(body(tables.rds(RDS, PLAIN).current), 'second');
});

t.test('an invalid long table leaves the previous one in use', async (t) => {
  const { apply, tables } = worker();
  apply(1, routesTo('one'));
  const source = tables.rds(RDS, PLAIN);
  const good = Array.from({ length: 100 }, () => ({ match: { prefix: '/' }, route: { cluster: 'two' } }));
  const bad = { match: { prefix: '/' }, direct_response: { status: 200, body: { filename: '/nonexistent/file' } } };
  const virtual_hosts = [{ name: 'v', domains: ['*'], routes: [...good, bad] }];
  const routes = [{ id: 1, key: rdsKey(SOURCE, 'routes'), config: packRoutes({ name: 'routes', virtual_hosts }) }];
  for (const _ of tables.prepare({ routes }));
  tables.apply({ routes, routeScopes: [] });
  t.equal(clusterOf(source), 'one');
});

t.test('a table that cannot be built leaves the previous one in use', async (t) => {
  const { apply, tables } = worker();
  apply(1, routesTo('one'));
  const source = tables.rds(RDS, PLAIN);
  const body = { filename: '/nonexistent/file' };
  const routes = [{ match: { prefix: '/' }, direct_response: { status: 200, body } }];
  apply(1, { name: 'routes', virtual_hosts: [{ name: 'v', domains: ['*'], routes }] });
  t.equal(clusterOf(source), 'one');
});

t.test('the scope of a request selects its routes', async (t) => {
  const { tables } = worker();
  const builder = { fragments: [{ header_value_extractor: { name: 'tenant', index: 0 } }] };
  const scoped = { name: 'scopes', scope_key_builder: builder, rds_config_source: SOURCE };
  const key = keyOfScopedRoutes(scoped);
  const source = tables.scoped(scoped, PLAIN);
  const clusterFor = (tenant: string) => {
    const headers = requestHead('GET /', 'Host: foo.com', `tenant: ${tenant}`);
    return source.tableFor(headers).match(headers, 0)?.clusterName;
  };
  t.equal(clusterFor('a'), undefined, 'there is none yet');
  const routes = [1, 2].map((id) => ({ id, key: '', config: packRoutes(routesTo(`cluster-${id}`)) }));
  const scopes = [
    { fragments: ['a'], routes: 1 },
    { fragments: ['ä'], routes: 2 },
  ];
  tables.apply({ routes, routeScopes: [{ key, scopes }] });
  t.equal(clusterFor('a'), 'cluster-1');
  t.equal(clusterFor(Buffer.from('ä').toString('latin1')), 'cluster-2');
  t.equal(clusterFor('b'), undefined);
  tables.apply({ routes: [{ id: 1, key: '', config: packRoutes(routesTo('new')) }], routeScopes: [] });
  t.equal(clusterFor('a'), 'new');
  tables.apply({ routes: [], routeScopes: [{ key, scopes: [{ fragments: ['b'], routes: 1 }] }] });
  t.equal(clusterFor('a'), undefined);
  t.equal(clusterFor('b'), 'new');
});

t.test('a virtual host is requested once, and the request is withdrawn when no request waits', async (t) => {
  const { apply, port, sent, tables } = worker();
  apply(1, routesTo('one', 'known.com', { vhds: { config_source: SOURCE }, ignore_port_in_host_matching: true }));
  const missing = (host: string) => tables.rds(RDS, PLAIN).current.missingHost(requestHead('GET /', `Host: ${host}`));
  t.equal(missing('known.com:80'), undefined);
  const { host, hosts } = missing('Foo.com:8080')!;
  t.equal(host, 'foo.com');
  let told = 0;
  const waiters = Array.from({ length: 3 }, () => ({ hostSettled: () => void told++ }));
  for (const waiter of waiters) hosts.request(host, waiter);
  t.strictSame(sent.splice(0), [{ routes: 1, host, isWanted: true }]);
  hosts.cancel(host, waiters[0]!);
  port.onState?.({ routes: 2, host });
  t.equal(told, 0);
  port.onState?.({ routes: 1, host });
  t.equal(told, 2);
  port.onState?.({ routes: 1, host });
  t.equal(told, 2);
  hosts.cancel(host, waiters[1]!);
  t.strictSame(sent, []);
  hosts.request(host, waiters[1]!);
  t.strictSame(sent.splice(0), [{ routes: 1, host, isWanted: true }], 'it may have been added since');
  hosts.cancel(host, waiters[1]!);
  t.strictSame(sent, [{ routes: 1, host, isWanted: false }]);
});

t.test('when too many requests wait for virtual hosts the oldest one continues without', async (t) => {
  const { apply, sent, tables } = worker();
  apply(1, routesTo('one', 'known.com', { vhds: { config_source: SOURCE } }));
  const { hosts } = tables.rds(RDS, PLAIN).current.missingHost(requestHead('GET /', 'Host: made-up'))!;
  const told: number[] = [];
  const waiters = Array.from({ length: 1026 }, (_, index) => ({ hostSettled: () => void told.push(index) }));
  for (const [index, waiter] of waiters.entries()) hosts.request(index < 1000 ? 'made-up' : `made-up-${index}`, waiter);
  t.strictSame(told, [], 'not during the request of another one');
  hosts.cancel('made-up', waiters[1]!);
  await waitFor(() => told.length > 0, { what: 'the end of waiting' });
  t.strictSame(told, [0], 'requests that have ended meanwhile are not resumed');
  t.same(sent.at(-1), { routes: 1, dismissed: 2 }, 'both are counted');
  t.ok(
    sent.slice(0, -1).every((said) => (said as { isWanted: boolean }).isWanted),
    'others wait for the same',
  );
});
