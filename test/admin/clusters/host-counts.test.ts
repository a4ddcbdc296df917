import t from 'tap';
import { countedHosts } from '../../../src/admin/clusters/host-counts.js';
import { HostStats } from '../../../src/stats/layouts/cluster.js';
import { StatsStore } from '../../../src/stats/store.js';
import { endpointsOf, HostDirectory } from './hosts.js';

t.test('the hosts of a long list are counted while it is printed, without removed ones', async (t) => {
  const store = new StatsStore({ workers: 1 });
  const directory = new HostDirectory({
    allocate: (address) => {
      const scope = store.addScope(`cluster.c.host.${address}.`, HostStats, { hidden: true });
      return { block: scope.base, scope };
    },
    retire: ({ scope }) => store.removeScope(scope),
  });
  directory.update(endpointsOf(3000));
  let read = 0;
  const cluster = {
    get hosts() {
      read++;
      return directory.hosts;
    },
  };
  const printed: string[] = [];
  for (const { host, counts } of countedHosts(cluster, store)) {
    printed.push(host.address);
    t.equal(counts[0], 0);
    if (printed.length !== 100) continue;
    // All but the last host are removed, and the block of a removed one is reused for another host, which counts.
    directory.update(endpointsOf(3000).slice(-1));
    const scope = store.addScope('cluster.d.host.x.', HostStats);
    for (const at of Object.values(HostStats.at)) store.scope(scope).add(at as never, 7);
  }
  t.equal(printed.length, 501, 'those counted before the change, and the remaining one');
  t.equal(printed.at(-1), directory.hosts[0]!.address);
  t.ok(read > 2, 'the list was read again');
});
