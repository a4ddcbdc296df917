// What load reports count of a cluster, between one report and the next.

import t from 'tap';
import { HostLoads, type ReportedCluster } from '../../../src/server/load-reports/host-loads.js';
import { ClusterStats } from '../../../src/stats/layouts/cluster.js';
import { StatsStore } from '../../../src/stats/store.js';

t.test(
  'requests that are dropped as the assignment demands are counted also when their counter begins again at 0',
  (t) => {
    const store = new StatsStore({ workers: 1 });
    const scope = store.addScope('cluster.a.', ClusterStats);
    const counts = store.scope(scope);
    const loads = new HostLoads(store);
    const cluster = { spec: { name: 'a' }, edsServiceName: '', scope, hosts: [], drop: { category: 'x' } };
    const dropped = (droppedByPolicy: number): unknown => {
      loads.begin();
      const { value } = loads.report({ ...cluster, droppedByPolicy } satisfies ReportedCluster, false).next();
      loads.sent();
      const { dropped_requests, total_dropped_requests } = value as Record<string, unknown>;
      return [total_dropped_requests, dropped_requests];
    };
    [...loads.skip({ ...cluster, droppedByPolicy: 2 ** 32 - 3 })];
    t.same(dropped(2 ** 32 - 1), [2, [{ category: 'x', dropped_count: 2 }]]);
    counts.increment(ClusterStats.at.upstream_rq_pending_overflow);
    t.same(dropped(4), [6, [{ category: 'x', dropped_count: 5 }]]);
    t.same(dropped(4), [0, []]);
    store.resetCounters();
    t.same(dropped(5), [1, [{ category: 'x', dropped_count: 1 }]], 'a counter that was reset is not negative');
    t.end();
  },
);
