// Routes that sources deliver: shared by all that name them, checked before workers receive them, and kept while there is nothing
// better.

import t from 'tap';
import { runSync } from '../../../src/common/time/next-turn.js';
import type { ScopedRouteConfiguration, ScopedRoutes, VirtualHost } from '../../../src/config/generated/api.js';
import { InitManager } from '../../../src/server/init/init-manager.js';
import { AwaitedHostStats } from '../../../src/stats/layouts/xds.js';
import { packRoutes, unpackRoutes } from '../../../src/worker/messages/packed-routes.js';
import { stepsOf } from '../../../src/xds/subscription.js';
import { waitFor } from '../../e2e/harness/index.js';
import { unreadable } from '../../xds/fake-sources.js';
import { all, hostTo, RoutesFixture, resource, routesTo, SOURCE } from './fixture.js';

t.test('managers that name the same routes share a subscription, until the last one is closed', async (t) => {
  const fixture = new RoutesFixture();
  const one = fixture.useRds();
  const other = fixture.useRds();
  fixture.useRds(undefined, 'others');
  t.equal(fixture.of('route').length, 2);
  fixture.send('route', all(routesTo('a')));
  t.equal(fixture.configs.length, 2);
  one.close();
  one.close();
  t.equal(fixture.of('route').length, 2);
  other.close();
  t.strictSame(
    fixture.of('route').map(({ statPrefix }) => statPrefix),
    ['http.in.rds.others.'],
  );
  t.strictSame(fixture.published.at(-1), { removedRoutes: [1] });
  t.equal(fixture.store.value('http.in.rds.routes.config_reload'), undefined, 'its stats are removed with it');
});

t.test('a listener waits for its routes, and no longer than until the fetch timeout', async (t) => {
  const waiting = new InitManager('waiting');
  const late = new InitManager('late');
  const fixture = new RoutesFixture();
  fixture.useRds(waiting);
  t.strictSame(waiting.unreadyTargets, ['RDS routes']);
  fixture.send('route', all(routesTo('a')));
  t.strictSame(waiting.unreadyTargets, []);
  fixture.useRds(late, 'late');
  fixture.of('route')[1]!.watcher.fetchTimedOut();
  t.strictSame(late.unreadyTargets, []);
  const again = new InitManager('again');
  fixture.useRds(again);
  t.strictSame(again.unreadyTargets, [], 'current routes are not awaited');
  const gone = new InitManager('gone');
  fixture.useRds(gone, 'gone').close();
  t.strictSame(gone.unreadyTargets, []);
});

t.test('an unusable update is rejected with its reason, and changes nothing', async (t) => {
  const fixture = new RoutesFixture();
  fixture.useRds();
  const first = routesTo('a');
  t.strictSame(fixture.send('route', all(first)), [], 'clusters need not exist');
  const twice = { name: 'routes', virtual_hosts: [hostTo('a', 'x'), { ...hostTo('a', 'x'), name: 'other' }] };
  t.match(fixture.send('route', all(twice)), [{ name: 'routes', details: /'routes'.*domain 'x' occurs twice/ }]);
  const unknown = routesTo('nowhere', 'routes', { validate_clusters: true });
  t.match(fixture.send('route', all(unknown)), [{ name: 'routes', details: /'routes': unknown cluster 'nowhere'/ }]);
  t.equal(fixture.routes.snapshots().routes[0]!.config, packRoutes(first));
  const [provider] = fixture.routes.providers;
  t.match(provider!.state, { clientStatus: 'NACKED', errorState: { details: /nowhere/ }, versionInfo: '1' });
  t.strictSame(fixture.send('route', all(routesTo('known', 'routes', { validate_clusters: true }))), []);
  t.match(provider!.state, { clientStatus: 'ACKED', errorState: undefined });
  t.equal(fixture.store.value('http.in.rds.routes.config_reload'), 2);
});

t.test('many routes are checked and packed in steps, and workers receive them as a whole at the end', (t) => {
  const fixture = new RoutesFixture();
  fixture.useRds();
  const first = routesTo('a');
  fixture.send('route', all(first));
  const hosts = Array.from({ length: 5000 }, (_, index) => ({ ...hostTo('a', `x${index}`), name: `x${index}` }));
  const many = { name: 'routes', virtual_hosts: hosts };
  const published = fixture.published.length;
  const steps = stepsOf(fixture.of('route')[0]!.watcher.update(all(many)));
  let turns = 0;
  for (; steps.next().done !== true; turns++) {
    t.equal(fixture.published.length, published);
    t.equal(fixture.routes.snapshots().routes[0]!.config, packRoutes(first), 'a starting worker gets those in use');
  }
  t.ok(turns >= 20, `${turns} steps`);
  t.equal(fixture.published.length, published + 1);
  t.strictSame(fixture.configs.at(-1)?.virtual_hosts, hosts);
  t.end();
});

t.test('routes whose last user is closed during their check are not published', (t) => {
  const fixture = new RoutesFixture();
  const user = fixture.useRds();
  const hosts = Array.from({ length: 5000 }, (_, index) => ({ ...hostTo('a', `x${index}`), name: `x${index}` }));
  const steps = stepsOf(fixture.of('route')[0]!.watcher.update(all({ name: 'routes', virtual_hosts: hosts })));
  t.equal(steps.next().done, false);
  user.close();
  const published = fixture.published.length;
  for (const _ of steps);
  t.equal(fixture.published.length, published);
  t.end();
});

t.test('the dump and the stats show that a source does not have the routes', async (t) => {
  const fixture = new RoutesFixture();
  const init = new InitManager('listener');
  fixture.useRds(init);
  const [provider] = fixture.routes.providers;
  const empty = () => fixture.store.value('http.in.rds.routes.update_empty');
  t.equal(empty(), 0);
  t.strictSame(fixture.send('route', all()), [], 'as from a file with other routes');
  t.strictSame(init.unreadyTargets, []);
  t.equal(empty(), 1);
  t.equal(provider!.state.clientStatus, 'REQUESTED');
  fixture.send('route', { ...all(), isComplete: false, removed: ['routes'] });
  t.equal(empty(), 1, 'that is information');
  t.equal(provider!.state.clientStatus, 'DOES_NOT_EXIST');
  fixture.send('route', all(routesTo('a')));
  t.equal(provider!.state.clientStatus, 'ACKED');
  fixture.send('route', { ...all(), isComplete: false, removed: ['routes'] });
  t.equal(provider!.state.clientStatus, 'ACKED', 'they stay in use');
});

t.test('the same routes again change nothing, and routes that the source no longer has stay', async (t) => {
  const fixture = new RoutesFixture();
  fixture.useRds();
  const update = all(routesTo('a'));
  fixture.send('route', update);
  const before = fixture.published.length;
  fixture.send('route', update);
  fixture.send('route', { ...update, isComplete: false, resources: [], removed: ['routes'] });
  t.equal(fixture.published.length, before);
  t.equal(fixture.routes.snapshots().routes[0]!.config, packRoutes(update.resources[0]!.message));
});

const FUSSY = {
  signature: 'fussy',
  list: [
    {
      name: 'fussy',
      compileRouteConfig() {
        throw new Error('not this one');
      },
    },
  ],
};

/** Routes that FUSSY cannot use, but others can. */
function badForFussy(name: string) {
  return routesTo('known', name, { typed_per_filter_config: { fussy: { '@type': 'x' } } });
}

t.test('routes that a filter cannot use are rejected, whether the filter or the routes arrive first', async (t) => {
  const fixture = new RoutesFixture();
  const config = badForFussy('routes');
  fixture.useRds();
  t.strictSame(fixture.send('route', all(config)), []);
  const init = new InitManager('fussy');
  t.throws(() => fixture.useRds(init, 'routes', FUSSY), /not this one/);
  t.strictSame(init.unreadyTargets, []);
  fixture.useRds(undefined, 'others', FUSSY);
  const rejected = [{ name: 'others', details: /not this one/ }];
  t.match(fixture.send('route', all({ ...config, name: 'others' }), 1), rejected);
});

t.test('routes in the configuration itself need their clusters, unless configured otherwise', async (t) => {
  const { routes } = new RoutesFixture();
  const use = (cluster: string, more = {}) => {
    const manager = { route_config: routesTo(cluster, 'inline', more) };
    return routes.attach({ manager, statPrefix: '', filters: { list: [], signature: '' }, waitFor: t.fail as never });
  };
  t.throws(() => use('nowhere'), /'inline': unknown cluster 'nowhere'/);
  const parts = [use('known'), use('nowhere', { validate_clusters: false })];
  t.equal([...routes.inline].length, 2);
  for (const part of parts) part.close();
  t.equal([...routes.inline].length, 0);
  t.equal(routes.isUsed, false);
});

const BUILDER = { fragments: [{ header_value_extractor: { name: 'x', index: 0 } }] };
const SRDS: ScopedRoutes = {
  name: 'scopes',
  scope_key_builder: BUILDER,
  rds_config_source: SOURCE,
  scoped_rds: { scoped_rds_config_source: SOURCE },
};

function scope(name: string, key: string, more: ScopedRouteConfiguration): ScopedRouteConfiguration {
  return { name, key: { fragments: [{ string_key: key }] }, ...more };
}

t.test('scopes are used with the routes that they name, for which their listener waits', async (t) => {
  const fixture = new RoutesFixture();
  const init = new InitManager('listener');
  const part = fixture.useScopes(SRDS, init);
  t.strictSame(init.unreadyTargets, ['SRDS scopes']);
  const named = scope('a', '1', { route_configuration_name: 'shared' });
  const same = scope('b', '2', { route_configuration_name: 'shared' });
  const own = scope('c', '3', { route_configuration: routesTo('known', 'own') });
  t.strictSame(fixture.send('scoped-route', all(named, same, own)), []);
  t.equal(fixture.of('route').length, 1);
  t.strictSame(init.unreadyTargets, ['SRDS scopes']);
  fixture.send('route', all(routesTo('a', 'shared')));
  t.strictSame(init.unreadyTargets, []);
  t.equal(fixture.store.value('http.in.scoped_rds.scopes.all_scopes'), 3);
  const { routeScopes, routes } = fixture.routes.snapshots();
  const nameOf = (id: number) => routes.find((each) => each.id === id)?.config?.config.name;
  t.strictSame(
    routeScopes[0]!.scopes.map(({ fragments, routes: id }) => [...fragments, nameOf(id)]),
    [
      ['1', 'shared'],
      ['2', 'shared'],
      ['3', 'own'],
    ],
  );
  fixture.send('scoped-route', { ...all(own), isComplete: true });
  t.equal(fixture.of('route').length, 0, 'routes that no scope names are no longer subscribed to');
  t.equal(fixture.configs.length, 1);
  part.close();
  t.equal(fixture.of('scoped-route').length, 0);
  t.equal(fixture.configs.length, 0);
});

t.test('an unusable scope is rejected, and stays as it was', async (t) => {
  const fixture = new RoutesFixture();
  fixture.useScopes(SRDS);
  const first = scope('a', '1', { route_configuration: routesTo('known', 'own') });
  fixture.send('scoped-route', all(first));
  const delta = (...messages: ScopedRouteConfiguration[]) => ({ ...all(...messages), isComplete: false });
  const keys = () => fixture.routes.snapshots().routeScopes[0]!.scopes.map(({ fragments }) => fragments[0]);
  const clash = scope('b', '1', { route_configuration: routesTo('known', 'own') });
  t.match(fixture.send('scoped-route', delta(clash)), [{ name: 'b', details: "its key is that of the scope 'a'" }]);
  const unknown = scope('a', '2', { route_configuration: routesTo('nowhere', 'own') });
  t.match(fixture.send('scoped-route', delta(unknown)), [{ name: 'a', details: /unknown cluster 'nowhere'/ }]);
  t.match(fixture.send('scoped-route', delta(scope('c', '3', {}))), [{ name: 'c', details: /it needs/ }]);
  t.strictSame(keys(), ['1']);
  const swapped = [scope('a', '9', first), scope('b', '1', first)].map((each, index) => ({
    ...each,
    key: { fragments: [{ string_key: index === 0 ? '9' : '1' }] },
    name: index === 0 ? 'a' : 'b',
  }));
  t.strictSame(fixture.send('scoped-route', delta(...swapped)), [], 'keys may be exchanged');
  t.strictSame(keys(), ['9', '1']);
});

t.test('scopes stay when an update has one without a readable name', async (t) => {
  const fixture = new RoutesFixture();
  fixture.useScopes(SRDS);
  const a = scope('a', '1', { route_configuration: routesTo('known', 'a') });
  const b = scope('b', '2', { route_configuration: routesTo('known', 'b') });
  fixture.send('scoped-route', all(a, b));
  const c = scope('c', '3', { route_configuration: routesTo('known', 'c') });
  fixture.send('scoped-route', { ...all(c), refused: [unreadable('', 'garbage')] });
  const [provider] = fixture.routes.scoped;
  t.strictSame(
    [...provider!.resources()].map(({ name }) => name),
    ['a', 'b', 'c'],
  );
});

t.test('a scope of which only the key has changed is found by the new key', async (t) => {
  const fixture = new RoutesFixture();
  fixture.useScopes(SRDS);
  const named = { route_configuration_name: 'shared' };
  fixture.send('scoped-route', all(scope('a', '1', named)));
  fixture.send('scoped-route', all(scope('a', '2', named)));
  const sent = fixture.published.flatMap(({ routeScopes }) => routeScopes ?? []);
  t.strictSame(
    sent.at(-1)?.scopes.map(({ fragments }) => fragments),
    [['2']],
  );
});

t.test('a scope that names other routes gets them before the old ones are removed', async (t) => {
  const fixture = new RoutesFixture();
  fixture.useScopes(SRDS);
  fixture.send('scoped-route', all(scope('a', '1', { route_configuration_name: 'former' })));
  const idOf = (name: string) => [...fixture.routes.providers].find((each) => each.name === name)?.id;
  const former = idOf('former');
  fixture.published.length = 0;
  fixture.send('scoped-route', all(scope('a', '1', { route_configuration_name: 'later' })));
  const later = idOf('later');
  t.equal(idOf('former'), undefined);
  const sent = fixture.published.map(({ routes = [], routeScopes = [], removedRoutes = [] }) => ({
    routes: routes.map(({ id }) => id),
    used: routeScopes.flatMap(({ scopes }) => scopes.map((each) => each.routes)),
    removed: removedRoutes,
  }));
  t.strictSame(sent, [
    { routes: [later], used: [], removed: [] },
    { routes: [], used: [later], removed: [] },
    { routes: [], used: [], removed: [former] },
  ]);
});

t.test(
  'scopes are refused where a filter cannot use their routes, whether the filter or the routes arrive first',
  async (t) => {
    for (const [what, routes] of Object.entries({
      'of their own': { route_configuration: badForFussy('own') },
      'that they name': { route_configuration_name: 'shared' },
    })) {
      const fixture = new RoutesFixture();
      fixture.useRds(undefined, 'shared');
      fixture.send('route', all(badForFussy('shared')));
      const first = fixture.useScopes(SRDS);
      fixture.send('scoped-route', all(scope('a', '1', routes)));
      const init = new InitManager('fussy');
      t.throws(() => fixture.useScopes(SRDS, init, FUSSY), /not this one/, `routes ${what}`);
      t.strictSame(init.unreadyTargets, []);
      t.equal(fixture.routes.snapshots().routeScopes[0]!.scopes.length, 1, 'those in use stay in use');
      first.close();
      t.equal([...fixture.routes.scoped].length, 0);

      fixture.useScopes(SRDS, undefined, FUSSY);
      const rejections = fixture.send('scoped-route', all(scope('a', '1', routes), scope('b', '2', routes)));
      t.match(rejections, [
        { name: 'a', details: /not this one/ },
        { name: 'b', details: /not this one/ },
      ]);
      t.strictSame(fixture.routes.snapshots().routeScopes[0]!.scopes, []);
      t.equal(fixture.of('route').length, 1, 'a rejected scope subscribes to nothing');
    }
  },
);

t.test('virtual hosts requested on demand join the routes, and waiting workers are notified', async (t) => {
  const fixture = new RoutesFixture();
  const init = new InitManager('listener');
  fixture.useRds(init);
  const config = routesTo('a', 'routes', { virtual_hosts: [hostTo('a', 'here')], vhds: { config_source: SOURCE } });
  fixture.send('route', all(config));
  t.strictSame(init.unreadyTargets, ['RDS routes'], 'the source of virtual hosts is asked first');
  fixture.send('virtual-host', { ...all(), isComplete: false });
  t.strictSame(init.unreadyTargets, []);
  const ask = (host: string) => fixture.port.onMessage?.(0, { routes: 1, host, isWanted: true });
  ask('there');
  ask('nowhere');
  const [named] = fixture.of('virtual-host');
  await turn();
  t.strictSame(named!.names, new Set(['*', 'routes/there', 'routes/nowhere']));
  t.strictSame(fixture.settled, []);
  const there = { ...resource(hostTo('a', 'there')), name: 'routes/there' };
  const foreign = { ...resource(hostTo('a', 'foreign')), name: 'others/there' };
  const removed = ['routes/nowhere'];
  fixture.send('virtual-host', { version: '2', isComplete: false, resources: [there, foreign], refused: [], removed });
  await waitFor(() => fixture.settled.length === 2, { what: 'the answers' });
  t.strictSame(
    fixture.settled.map(({ host }) => host),
    ['there', 'nowhere'],
  );
  t.strictSame(
    fixture.configs[0]!.virtual_hosts!.map(({ name }) => name),
    ['here', 'there'],
  );
  await turn();
  t.strictSame(named!.names, new Set(['*', 'routes/there']), 'a missing host is no longer subscribed to');
  const clash = { ...resource(hostTo('a', 'here')), name: 'routes/clash' };
  const rejections = fixture.send('virtual-host', { ...all(), isComplete: false, resources: [clash] });
  t.match(rejections, [{ name: 'routes/clash', details: "another virtual host has the domain 'here'" }]);
  fixture.send('route', all({ ...config, internal_only_headers: ['x'] }));
  t.equal(fixture.configs[0]!.virtual_hosts!.length, 2, 'other routes keep the virtual hosts');
  fixture.send('route', all({ ...config, vhds: { config_source: { self: {} } } }));
  t.equal(fixture.configs[0]!.virtual_hosts!.length, 1, 'another source has others');
});

t.test('an unusable virtual host prevents neither additions nor removals', async (t) => {
  const fixture = new RoutesFixture();
  fixture.useRds();
  const config = { validate_clusters: true, virtual_hosts: [hostTo('known', 'own')], vhds: { config_source: SOURCE } };
  fixture.send('route', all(routesTo('known', 'routes', config)));
  const send = (removed: string[], ...hosts: VirtualHost[]) => {
    const resources = hosts.map((host) => ({ ...resource(host), name: `routes/${host.name}` }));
    return fixture.send('virtual-host', { ...all(), isComplete: false, resources, removed });
  };
  const domains = () => fixture.configs[0]!.virtual_hosts!.flatMap(({ domains }) => domains);
  t.strictSame(send([], hostTo('known', 'a'), hostTo('known', 'b'), hostTo('known', 'c')), []);
  t.match(send(['routes/a'], hostTo('unknown', 'b'), hostTo('known', 'd'), hostTo('unknown', 'e')), [
    { name: 'routes/b', details: /unknown cluster/ },
    { name: 'routes/e', details: /unknown cluster/ },
  ]);
  t.strictSame(domains(), ['own', 'b', 'c', 'd']);
  const clashing = { ...hostTo('known', 'f'), domains: ['f', 'D'] };
  t.match(send(['routes/c'], hostTo('known', 'e'), clashing, hostTo('known', 'g')), [
    { name: 'routes/f', details: "another virtual host has the domain 'd'" },
  ]);
  t.strictSame(domains(), ['own', 'b', 'd', 'e', 'g']);

  const named = (name: string, ...domains: string[]) => ({ ...hostTo('known', name), domains });
  const e = named('e', 'd');
  t.strictSame(send([], named('d', 'e'), e), [], 'two that exchange their domains');
  t.match(
    send([], named('b', 'own'), named('g', 'b'), named('h', 'g', 'h')),
    [{ name: 'routes/b' }, { name: 'routes/g' }, { name: 'routes/h' }],
    'the domains that a refused one keeps are not free for others',
  );
  t.match(send([], named('i', 'd'), e), [{ name: 'routes/i' }], 'nor are those of one that returns');
  t.strictSame(domains(), ['own', 'b', 'e', 'd', 'g']);
});

t.test(
  'virtual hosts that arrive one by one are published together, and before their waiting requests resume',
  async (t) => {
    const fixture = new RoutesFixture();
    fixture.useRds();
    const many = Array.from({ length: 500 }, (_, index) => hostTo('a', `h${index}`));
    fixture.send('route', all(routesTo('a', 'routes', { virtual_hosts: many, vhds: { config_source: SOURCE } })));
    fixture.send('virtual-host', { ...all(), isComplete: false });
    const before = fixture.published.length;
    const names = Array.from({ length: 20 }, (_, index) => `new${index}`);
    for (const name of names) fixture.port.onMessage?.(0, { routes: 1, host: name, isWanted: true });
    for (const name of names) {
      const resources = [{ ...resource(hostTo('a', name)), name: `routes/${name}` }];
      t.strictSame(fixture.send('virtual-host', { ...all(), isComplete: false, resources }), []);
    }
    t.equal(fixture.configs[0]!.virtual_hosts!.length, 520, 'starting workers have them');
    t.equal(fixture.published.length, before, 'the routes themselves were published a moment ago');
    t.strictSame(fixture.settled, []);
    await waitFor(() => fixture.published.length > before, { what: 'the routes' });
    t.equal(runSync(unpackRoutes(fixture.published.at(-1)!.routes![0]!.config!)).config.virtual_hosts!.length, 520);
    t.strictSame(
      fixture.settled.map(({ host }) => host),
      names,
    );
    t.equal(fixture.published.length, before + 1);
  },
);

t.test('hosts that clients invent do not prevent requests for others', async (t) => {
  const fixture = new RoutesFixture();
  fixture.useRds();
  fixture.send('route', all(routesTo('a', 'routes', { virtual_hosts: [], vhds: { config_source: SOURCE } })));
  fixture.send('virtual-host', { ...all(), isComplete: false });
  const say = (host: string, worker: number, isWanted = true) =>
    fixture.port.onMessage?.(worker, { routes: 1, host, isWanted });
  const made = Array.from({ length: 1500 }, (_, index) => `made-up-${index}`);
  for (const host of made) say(host, 0);
  say('there', 1);
  await turn();
  const [named] = fixture.of('virtual-host');
  const asked = named!.names as ReadonlySet<string>;
  t.equal(asked.size, 1025, 'no more than that at one time');
  t.ok(asked.has('routes/there'));
  t.strictSame(
    fixture.settled.map(({ host }) => host),
    made.slice(0, 1501 - 1024),
    'those that have waited longest are released',
  );
  const { ref } = fixture.store
    .scopesUnder('http.in.rds.vhds.routes.')
    .find(({ layout }) => layout === AwaitedHostStats)!;
  const { hosts_overflow: hosts, requests_overflow: requests } = AwaitedHostStats.at;
  t.equal(fixture.store.valueOf(ref, hosts), 1501 - 1024);
  fixture.port.onMessage?.(0, { routes: 1, dismissed: 3 });
  t.equal(fixture.store.valueOf(ref, requests), 3);

  const count = fixture.settled.length;
  say('there', 0);
  for (const host of [...made, 'there']) say(host, 0, false);
  await turn();
  t.strictSame(
    named!.names,
    new Set(['*', 'routes/there']),
    'a host without waiting requests is no longer subscribed to',
  );
  t.equal(fixture.settled.length, count);
  say('there', 1, false);
  await turn();
  t.strictSame(named!.names, new Set(['*']));
});

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
