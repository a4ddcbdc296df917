import t from 'tap';
import { countedHosts } from '../../../src/admin/clusters/host-counts.js';
import { HostStats } from '../../../src/stats/layouts/cluster.js';
import { StatsStore } from '../../../src/stats/store.js';
import { endpointsOf, HostDirectory } from './hosts.js';

t.test('the hosts of a long list are counted while they are printed, without those that have left', async (t) => {
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
    // All but the last host leave, and the block of one that has left goes to another one, which counts.
    directory.update(endpointsOf(3000).slice(-1));
    const scope = store.addScope('cluster.d.host.x.', HostStats);
    for (const at of Object.values(HostStats.at)) store.scope(scope).add(at as never, 7);
  }
  t.equal(printed.length, 501, 'those that were counted before the change, and the one that is left');
  t.equal(printed.at(-1), directory.hosts[0]!.address);
  t.ok(read > 2, 'looked at the list again');
});
