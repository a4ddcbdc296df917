// Adding, changing and removing clusters: which version serves meanwhile, what is kept, and what is freed.

import t from 'tap';
import { ClusterStats, HostStats } from '../../../src/stats/layouts/cluster.js';
import { scopePrefix } from '../../../src/stats/scope-prefix.js';
import { ThreadStats } from '../../../src/stats/thread-stats.js';
import { HealthFlag } from '../../../src/upstream/hosts/health-flags.js';
import { unreadable } from '../../xds/fake-sources.js';
import { ADS, assignment, Clusters, edsCluster, resource, staticCluster } from './clusters.js';

t.test('a changed cluster serves with its old hosts until the new version has hosts', async (t) => {
  const clusters = new Clusters();
  clusters.start([staticCluster('a', ['10.0.0.1'])]);
  await clusters.turn();
  const before = clusters.published.at(-1)!.clusters[0]!;
  clusters.set.setStatic([edsCluster('a')]);
  t.same(clusters.hosts('a'), ['10.0.0.1:80']);
  t.equal(clusters.value('cluster_manager.warming_clusters'), 1);
  t.equal(clusters.value('cluster.a.warming_state'), 1);

  clusters.sources.to('a').deliver({ resources: [resource(assignment('a', ['10.0.0.1', '10.0.0.2']))] });
  t.same(clusters.hosts('a'), ['10.0.0.1:80', '10.0.0.2:80']);
  await clusters.turn();
  const after = clusters.published.at(-1)!.clusters[0]!;
  t.not(after.specVersion, before.specVersion);
  t.equal(after.block, before.block, 'its limits hold across the change');
  t.same(after.scope, before.scope, 'its counters continue');
  t.equal(after.hosts.blocks[0], before.hosts.blocks[0], 'a remaining host stays the same');
  t.match(
    ['cluster_added', 'cluster_modified', 'warming_clusters', 'active_clusters'].map((name) =>
      clusters.value(`cluster_manager.${name}`),
    ),
    [1, 1, 0, 1],
  );
  t.equal(clusters.value('cluster.a.warming_state'), 0);
});

t.test('observations of hosts in a turn are combined with what discovery reports', async (t) => {
  const clusters = new Clusters();
  clusters.start([edsCluster('a')]);
  const eds = clusters.sources.to('a');
  eds.deliver({ resources: [resource(assignment('a', ['10.0.0.1', '10.0.0.2'], { health: 'DEGRADED' }))] });
  const cluster = clusters.set.byName.get('a')!;
  const flags = () => Array.from(cluster.hosts, (host) => host.healthFlags);
  const healthGauges = () => ['healthy', 'degraded'].map((kind) => clusters.value(`cluster.a.membership_${kind}`));
  const failedCheck = HealthFlag.FailedActiveHealthCheck;
  const ejected = HealthFlag.FailedOutlierCheck;
  const degraded = HealthFlag.DegradedEdsHealth;
  await clusters.turn();
  const before = clusters.published.length;

  cluster.membership.observe('10.0.0.1:80', ejected, ejected);
  cluster.membership.observe('10.0.0.2:80', failedCheck, failedCheck);
  cluster.membership.observe('10.0.0.2:80', ejected, 0);
  await clusters.turn();
  clusters.advance(1001);
  await clusters.turn();
  t.same(flags(), [degraded | ejected, degraded | failedCheck]);
  t.same(healthGauges(), [0, 0]);
  t.equal(clusters.published.length, before + 1, 'in one snapshot');
  t.same([...clusters.published.at(-1)!.clusters[0]!.hosts.healthFlags], flags());

  eds.deliver({ resources: [resource(assignment('a', ['10.0.0.2', '10.0.0.1']))] });
  t.same(flags(), [failedCheck, ejected], 'an update of discovery keeps it');
  cluster.membership.observe('10.0.0.1:80', ejected, 0);
  await clusters.turn();
  t.same(
    [flags(), healthGauges()],
    [
      [failedCheck, 0],
      [1, 0],
    ],
  );
});

t.test('routes may refer to a cluster in the turn in which it is added', async (t) => {
  const clusters = new Clusters();
  clusters.start();
  clusters.startCds().deliver({ resources: [resource(staticCluster('a', ['10.0.0.1']))] });
  const names = () => clusters.published.flatMap((each) => each.clusters.map(({ spec }) => spec.name));
  t.same(names(), []);
  clusters.set.flush();
  t.same(names(), ['a']);
  await clusters.turn();
  clusters.set.flush();
  t.same(names(), ['a'], 'and once');
});

t.test('an unchanged cluster is not touched; a later version replaces one that is still warming', async (t) => {
  const clusters = new Clusters();
  clusters.start([staticCluster('a', ['10.0.0.1'])]);
  clusters.set.setStatic([staticCluster('a', ['10.0.0.1'])]);
  t.equal(clusters.value('cluster_manager.cluster_modified'), 0);
  clusters.set.setStatic([edsCluster('a', { eds_cluster_config: { eds_config: {}, service_name: 'x' } })]);
  const abandoned = clusters.sources.to('x');
  clusters.set.setStatic([edsCluster('a')]);
  t.ok(abandoned.isClosed);
  t.equal(clusters.set.warming.size, 1);
  clusters.sources.to('a').timeOut();
  t.same([clusters.set.warming.size, clusters.hosts('a').length], [0, 0], 'without an answer it is used without hosts');
});

t.test('static clusters are added all or none: one that cannot be created changes none', async (t) => {
  const clusters = new Clusters();
  clusters.start([staticCluster('a', ['10.0.0.1'])]);
  const impossible = { name: 'c', type: 'EDS' } as const;
  t.throws(() => clusters.set.setStatic([staticCluster('a', ['10.0.0.9']), impossible]), /needs an eds_cluster_config/);
  t.same([...clusters.set.byName.keys()], ['a']);
  t.same(clusters.hosts('a'), ['10.0.0.1:80']);
  t.equal(clusters.set.warming.size, 0);
  t.equal(clusters.value('cluster_manager.cluster_added'), 1);
});

t.test(
  'a removed cluster keeps its stats until its last connection has ended, and reuses them when it is added again',
  async (t) => {
    const clusters = new Clusters();
    const config = staticCluster('a', ['10.0.0.1']);
    clusters.start([config]);
    await clusters.turn();
    const { block, scope } = clusters.published.at(-1)!.clusters[0]!;
    const worker = new ThreadStats(clusters.store.attachment(0)).scope(scope);
    worker.increment(ClusterStats.at.upstream_cx_total);
    worker.increment(ClusterStats.at.upstream_cx_active);

    clusters.set.removeStatic(['a']);
    await clusters.turn();
    t.same(clusters.published.at(-1)!.removedClusters, ['a']);
    t.same(clusters.removed, ['a']);
    clusters.settle();
    t.equal(clusters.value('cluster.a.upstream_cx_total'), 1);

    clusters.set.setStatic([config]);
    await clusters.turn();
    t.equal(clusters.published.at(-1)!.clusters[0]!.block, block);
    worker.decrement(ClusterStats.at.upstream_cx_active);
    clusters.settle();
    t.equal(clusters.value('cluster.a.upstream_cx_total'), 1);

    clusters.set.removeStatic(['a']);
    await clusters.turn();
    clusters.settle();
    t.equal(clusters.value('cluster.a.upstream_cx_total'), undefined);
  },
);

t.test(
  'CDS uses valid clusters, leaves static clusters alone, and removes clusters that it no longer has',
  async (t) => {
    const clusters = new Clusters();
    clusters.start([staticCluster('fixed', ['10.0.0.1'])]);
    const cds = clusters.startCds();
    const first = [
      staticCluster('a', ['10.0.0.1']),
      staticCluster('b', ['10.0.0.1']),
      staticCluster('a', ['10.0.0.7']),
    ];
    const rejected = cds.deliver({
      version: '7',
      resources: [...first, staticCluster('fixed', ['10.0.0.9'])].map(resource),
      refused: [unreadable('c', 'it is wrong')],
    });
    t.same(rejected, [{ name: 'a', details: 'duplicate cluster a found' }]);
    t.same([...clusters.set.byName.keys()], ['fixed', 'a', 'b']);
    t.same([clusters.hosts('a'), clusters.hosts('fixed')], [['10.0.0.1:80'], ['10.0.0.1:80']]);
    t.equal(clusters.cds.version, '7');
    t.match(clusters.cds.states.get('c'), { clientStatus: 'NACKED', errorState: { details: 'it is wrong' } });

    cds.deliver({
      version: '8',
      resources: [resource(staticCluster('b', ['10.0.0.2']))],
      refused: [unreadable('a', '')],
    });
    t.same([...clusters.set.byName.keys()], ['fixed', 'a', 'b'], 'a refused cluster stays as it was');
    cds.deliver({ version: '9', resources: [resource(staticCluster('b', ['10.0.0.2']))] });
    t.same([...clusters.set.byName.keys()], ['fixed', 'b']);
    cds.deliver({ version: '', isComplete: false, removed: ['b', 'fixed'] });
    t.same([...clusters.set.byName.keys()], ['fixed']);
  },
);

t.test('the start waits for the first CDS update and for the hosts of its clusters', async (t) => {
  const clusters = new Clusters();
  clusters.set.loadPrimary([], clusters.init);
  const cds = clusters.startCds();
  const warming = () => clusters.value('cluster_manager.warming_clusters');
  t.same(clusters.init.unreadyTargets, ['CDS']);
  cds.deliver({ resources: [resource(edsCluster('a')), resource(staticCluster('b', ['10.0.0.1']))] });
  t.same(clusters.init.unreadyTargets, ['cluster a']);
  t.equal(warming(), 1);
  clusters.sources.to('a').deliver({ resources: [resource(assignment('a', []))] });
  t.same(clusters.init.unreadyTargets, []);
  t.equal(warming(), 0);
});

t.test('a failure of a resource without a name is shown until the next update', async (t) => {
  const clusters = new Clusters();
  clusters.start();
  const cds = clusters.startCds();
  cds.deliver({ isComplete: false, refused: [unreadable('', 'it is garbage'), unreadable('c', 'it is wrong')] });
  t.same([...clusters.cds.states.keys()], ['', 'c']);
  cds.deliver({ isComplete: false, resources: [resource(staticCluster('a', ['10.0.0.1']))] });
  t.same([...clusters.cds.states.keys()], ['c', 'a']);
});

t.test(
  'the next version of a cluster gets the current assignment, and its service is subscribed to once',
  async (t) => {
    const clusters = new Clusters();
    clusters.start();
    const cds = clusters.startCds();
    cds.deliver({ resources: [resource(edsCluster('a'))] });
    clusters.sources.to('a').deliver({ resources: [resource(assignment('a', ['10.0.0.1']))] });
    cds.deliver({ resources: [resource(edsCluster('a', { connect_timeout: '1s' }))] });
    t.equal(clusters.set.byName.get('a')!.spec.connectTimeoutMs, 1000, 'nothing is awaited');
    t.same(clusters.hosts('a'), ['10.0.0.1:80']);
    t.equal(clusters.sources.subscriptions.length, 2);
    cds.deliver({ resources: [] });
    t.ok(clusters.sources.subscriptions.every(({ isClosed, names }) => isClosed || names === '*'));
  },
);

t.test('changes that add or remove no host are merged; one that does cancels the merge', async (t) => {
  const clusters = new Clusters();
  clusters.start();
  clusters.startCds().deliver({ resources: [resource(edsCluster('a'))] });
  const eds = clusters.sources.to('a');
  const deliver = (changes: Parameters<typeof assignment>[2], ips = ['10.0.0.1', '10.0.0.2']) =>
    eds.deliver({ resources: [resource(assignment('a', ips, changes))] });
  const updates = () =>
    ['cluster_updated', 'update_out_of_merge_window', 'cluster_updated_via_merge', 'update_merge_cancelled'].map(
      (name) => clusters.value(`cluster_manager.${name}`),
    );
  deliver({});
  await clusters.turn();
  const count = clusters.published.length;
  deliver({ health: 'UNHEALTHY' });
  t.same(updates(), [1, 1, 0, 0], 'the first of its kind is delivered at once');
  deliver({ health: 'DEGRADED' });
  deliver({ health: 'DRAINING' });
  await clusters.turn();
  t.equal(clusters.published.length, count + 1);
  t.equal([...clusters.set.byName.get('a')!.hosts][0]!.endpoint.healthFlags, 512);
  clusters.advance(1000);
  await clusters.turn();
  t.same(updates(), [1, 1, 1, 0]);
  t.same([...clusters.published.at(-1)!.clusters[0]!.hosts.healthFlags], [512, 512]);
  deliver({ health: 'HEALTHY' });
  deliver({ health: 'HEALTHY' }, ['10.0.0.1']);
  t.same(updates(), [2, 1, 1, 1]);
  deliver({ health: 'HEALTHY' }, ['10.0.0.1']);
  t.equal(clusters.value('cluster.a.update_no_rebuild'), 1);
});

t.test('a refused assignment is not an empty update', async (t) => {
  const clusters = new Clusters();
  clusters.start();
  clusters.startCds().deliver({ resources: [resource(edsCluster('a'))] });
  const refused = [{ name: 'a', version: '1', details: 'no good', message: undefined }];
  clusters.sources.to('a').deliver({ isComplete: false, refused });
  t.equal(clusters.value('cluster_manager.warming_clusters'), 0, 'it counts as an answer nevertheless');
  t.equal(clusters.value('cluster.a.update_empty'), 0);
  clusters.sources.to('a').deliver({ isComplete: false });
  t.equal(clusters.value('cluster.a.update_empty'), 1);
});

t.test('hosts of a stale assignment are not used', async (t) => {
  const clusters = new Clusters();
  clusters.start();
  clusters.startCds().deliver({ resources: [resource(edsCluster('a'))] });
  const policy = { endpoint_stale_after: '5s', overprovisioning_factor: 200 };
  const message = { ...assignment('a', ['10.0.0.1'], { priority: 1 }), policy };
  clusters.sources.to('a').deliver({ resources: [resource(message)] });
  await clusters.turn();
  const { hosts, policy: used } = clusters.published.at(-1)!.clusters[0]!;
  t.same([[...hosts.priorities], used.overprovisioning], [[1], 200]);
  clusters.advance(4000);
  clusters.sources.to('a').deliver({ resources: [resource(message)] });
  clusters.advance(4000);
  t.same(clusters.hosts('a'), ['10.0.0.1:80']);
  clusters.advance(1000);
  t.same(clusters.hosts('a'), []);
  t.equal(clusters.value('cluster.a.assignment_timeout_received'), 2);
  t.equal(clusters.value('cluster.a.assignment_stale'), 1);
  clusters.sources.to('a').deliver({ resources: [resource(message)] });
  t.same(clusters.hosts('a'), ['10.0.0.1:80']);
});

t.test('a host that returns while its last requests run reuses its words and stats', async (t) => {
  const clusters = new Clusters();
  clusters.start();
  clusters.startCds().deliver({ resources: [resource(edsCluster('a'))] });
  const eds = clusters.sources.to('a');
  const blockOf = async (ips: readonly string[]) => {
    eds.deliver({ resources: [resource(assignment('a', ips))] });
    await clusters.turn();
    clusters.settle();
    return clusters.published.at(-1)!.clusters[0]!.hosts.blocks[0]!;
  };
  const block = await blockOf(['10.0.0.1']);
  const { ref } = clusters.store.scopesUnder(scopePrefix('cluster.a.endpoint.10.0.0.1:80.'))[0]!;
  const worker = new ThreadStats(clusters.store.attachment(0)).scope(ref);
  worker.increment(HostStats.at.cx_active);
  for (let round = 0; round < 3; round++) {
    t.not(await blockOf(['10.0.0.2']), block);
    t.equal(await blockOf(['10.0.0.1']), block);
  }
  t.not(await blockOf(['10.0.0.2']), block);
  worker.decrement(HostStats.at.cx_active);
  clusters.settle();
  clusters.settle();
  t.equal(clusters.words.allocateHost(), block, 'freed when the last one has ended');
});

t.test(
  'a cluster that returns without hosts, while earlier requests run, does not count its earlier hosts',
  async (t) => {
    const clusters = new Clusters();
    clusters.start([edsCluster('a')]);
    clusters.sources.to('a').deliver({ resources: [resource(assignment('a', ['10.0.0.1', '10.0.0.2']))] });
    await clusters.turn();
    t.equal(clusters.value('cluster.a.membership_total'), 2);
    clusters.set.removeStatic(['a']);
    clusters.set.setStatic([edsCluster('a')]);
    clusters.sources.subscriptions.at(-1)!.deliver({ resources: [resource(assignment('a', []))] });
    await clusters.turn();
    clusters.settle();
    t.same(clusters.hosts('a'), []);
    const gauges = ['membership_total', 'membership_healthy', 'max_host_weight'];
    t.same(
      gauges.map((name) => clusters.value(`cluster.a.${name}`)),
      [0, 0, 0],
    );
  },
);

t.test('a long assignment is applied in steps, and a newer one replaces it', async (t) => {
  const clusters = new Clusters();
  clusters.start();
  clusters.startCds().deliver({ resources: [resource(edsCluster('a'))] });
  const eds = clusters.sources.to('a');
  const many = (second: number) => Array.from({ length: 5000 }, (_, i) => `10.${second}.${i >> 8}.${i & 255}`);
  eds.deliver({ resources: [resource(assignment('a', many(1)))] });
  t.equal(clusters.set.warming.size, 1, 'other events have had no turn yet');
  await clusters.turn();
  eds.deliver({ resources: [resource(assignment('a', many(2)))] });
  for (let i = 0; i < 200 && clusters.set.warming.size > 0; i++) await clusters.turn();
  t.equal(clusters.hosts('a').length, 5000);
  t.equal(clusters.hosts('a')[0], '10.2.0.0:80');
  eds.deliver({ resources: [resource(assignment('a', ['10.0.0.1']))] });
  t.same(clusters.hosts('a'), ['10.0.0.1:80']);
  for (let i = 0; i < 20; i++) {
    await clusters.turn();
    clusters.settle();
  }
  const scopesOf = (ip: string) => clusters.store.scopesUnder(scopePrefix(`cluster.a.endpoint.${ip}:80.`)).length;
  t.same([scopesOf('10.1.0.0'), scopesOf('10.2.0.9'), scopesOf('10.0.0.1')], [0, 0, 1], 'the rest is freed');
});

t.test('a prepared long assignment is freed when a short one overtakes it, or its cluster is removed', async (t) => {
  const clusters = new Clusters();
  clusters.start();
  clusters.startCds().deliver({ resources: [resource(edsCluster('a'))] });
  const long = Array.from({ length: 5000 }, (_, i) => `10.1.${i >> 8}.${i & 255}`);
  const eds = clusters.sources.to('a');
  eds.deliver({ resources: [resource(assignment('a', long))] });
  await clusters.turn();
  eds.deliver({ resources: [resource(assignment('a', ['10.0.0.1']))] });
  const staged = clusters.set.stage([edsCluster('b')]);
  clusters.sources.to('b').deliver({ resources: [resource(assignment('b', long))] });
  await staged.ready;
  staged.discard();
  const scopes = () =>
    ['a', 'b'].map((name) => clusters.store.scopesUnder(scopePrefix(`cluster.${name}.endpoint.10.1.0.0:80.`)).length);
  t.same(scopes(), [1, 1]);
  for (let i = 0; i < 40; i++) {
    await clusters.turn();
    clusters.settle();
  }
  t.same(scopes(), [0, 0]);
});

t.test('what is prepared for a new version stays when the version in use gets other hosts', async (t) => {
  const clusters = new Clusters();
  clusters.start();
  const cds = clusters.startCds();
  cds.deliver({ resources: [resource(edsCluster('a'))] });
  const inUse = clusters.sources.to('a');
  inUse.deliver({ resources: [resource(assignment('a', ['10.0.0.1']))] });
  await clusters.turn();
  cds.deliver({
    resources: [resource(edsCluster('a', { eds_cluster_config: { eds_config: ADS, service_name: 'b' } }))],
  });
  const long = Array.from({ length: 5000 }, (_, i) => `10.1.${i >> 8}.${i & 255}`);
  clusters.sources.to('b').deliver({ resources: [resource(assignment('b', long))] });
  await clusters.turn();
  const scope = () => clusters.store.scopesUnder(scopePrefix('cluster.a.endpoint.10.1.0.0:80.'))[0]?.ref;
  const prepared = scope();
  t.ok(prepared);
  inUse.deliver({ resources: [resource(assignment('a', ['10.0.0.2']))] });
  await clusters.turn();
  clusters.settle();
  t.same([clusters.hosts('a'), scope()], [['10.0.0.2:80'], prepared]);
  for (let i = 0; i < 200 && clusters.set.warming.size > 0; i++) await clusters.turn();
  t.same([clusters.hosts('a').length, scope()], [5000, prepared]);
});

t.test('thousands of updates take no more memory than a few', async (t) => {
  const clusters = new Clusters();
  clusters.start();
  const cds = clusters.startCds();
  const update = async (round: number) => {
    const names = [`c${round % 3}`, `only-once-${round}`, 'same'];
    cds.deliver({
      resources: names.map((name) => resource(edsCluster(name, { connect_timeout: `${1 + (round % 50)}s` }))),
    });
    for (const name of names) {
      const ips = [`10.0.${round >> 8}.${round & 255}`, '10.9.9.9', `10.8.0.${round % 7}`];
      clusters.sources.to(name).deliver({ resources: [resource(assignment(name, ips))] });
    }
    clusters.sources.subscriptions.splice(1, clusters.sources.subscriptions.length, ...open(clusters));
    await clusters.turn();
    clusters.settle();
  };
  for (let round = 0; round < 50; round++) await update(round);
  const { extent, size } = clusters.store;
  const block = clusters.words.allocateHost();
  for (let round = 50; round < 3000; round++) await update(round);
  t.equal(clusters.store.extent.version, extent.version, 'no new memory for stats');
  t.ok(clusters.store.size <= size + 2 * (ClusterStats.entries.length + 3 * HostStats.entries.length));
  t.ok(Math.abs(clusters.words.allocateHost() - block) < 4096, 'words are reused');
  t.equal(clusters.value('cluster.only-once-2000.upstream_cx_total'), undefined);
});

function open(clusters: Clusters) {
  return clusters.sources.subscriptions.slice(1).filter(({ isClosed }) => !isClosed);
}

t.test('the largest weight of a host is reported', async (t) => {
  const clusters = new Clusters();
  clusters.start([edsCluster('a')]);
  const weighted = (...weights: number[]) => {
    const lb_endpoints = weights.map((load_balancing_weight, index) => ({
      endpoint: { address: { socket_address: { address: `10.0.0.${index}`, port_value: 80 } } },
      load_balancing_weight,
    }));
    clusters.sources.to('a').deliver({ resources: [resource({ cluster_name: 'a', endpoints: [{ lb_endpoints }] })] });
    return clusters.value('cluster.a.max_host_weight');
  };
  t.equal(weighted(2, 5, 3), 5);
  t.equal(weighted(2, 4, 3), 4);
  t.equal(weighted(), 0);
});
