// The gauge of active flushes of a TCP proxy: flushes that outlive the proxy do not change its stats, which may have a new owner.

import t from 'tap';
import { TcpProxy } from '../../../../src/extensions/filters/network/tcp-proxy/tcp-proxy.js';
import { Kind } from '../../../../src/stats/layout.js';
import { TcpStats } from '../../../../src/stats/layouts/tcp.js';
import { StatsStore } from '../../../../src/stats/store.js';
import { ThreadStats } from '../../../../src/stats/thread-stats.js';

t.test('a closed proxy counts no flushes, regardless of when they end', async (t) => {
  const store = new StatsStore({ workers: 1 });
  const ref = store.addScope('tcp.passing.', TcpStats);
  const stats = new ThreadStats(store.attachment(0)).scope(ref);
  const options = {
    pickCluster: () => ({ reference: undefined as never, match: undefined }),
    match: undefined,
    onDemand: undefined,
    findCluster: () => undefined,
    selectedCluster: () => undefined,
    idleMs: 0,
    maxConnectionMs: 0,
    maxConnectAttempts: 1,
    checksDrain: false,
    hashesSourceIp: false,
    backoff: undefined,
    tunnel: undefined,
    logs: { start: [], connected: [], periodic: [], end: [], intervalMs: 0 },
    chain: { filterChainName: '', metadata: undefined, listenerMetadata: undefined },
  };
  const proxy = new TcpProxy(undefined as never, options, stats);
  const active = () => store.valueAt(ref, TcpStats.at.upstream_flush_active, Kind.Gauge);
  const ends = [proxy.beginFlush(), proxy.beginFlush(), proxy.beginFlush()];
  t.equal(active(), 3);
  ends[0]!();
  t.equal(active(), 2);
  proxy.close();
  t.equal(active(), 0);
  const other = new TcpProxy(undefined as never, options, stats);
  for (let i = 0; i < 3; i++) other.beginFlush();
  for (const end of ends.slice(1)) end();
  t.equal(active(), 3);
  t.equal(store.valueAt(ref, TcpStats.at.upstream_flush_total, Kind.Counter), 6);
});
