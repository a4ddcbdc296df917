import t from 'tap';
import { SilenceCounter, Watchdog } from '../../../src/server/stats/watchdog.js';
import { WatchdogStats } from '../../../src/stats/layouts/server.js';
import { StatsStore } from '../../../src/stats/store.js';

t.test('a silence is counted once for each limit that it exceeds, in every scope', async (t) => {
  const store = new StatsStore({ workers: 1 });
  const scopes = ['workers.', 'server.worker_0.'].map((prefix) => store.scope(store.addScope(prefix, WatchdogStats)));
  const counter = new SilenceCounter({ missMs: 200, megaMissMs: 1000 }, scopes);
  const counts = () => ['watchdog_miss', 'watchdog_mega_miss'].map((name) => store.value(`server.worker_0.${name}`));
  counter.check(1000, 1199);
  t.same(counts(), [0, 0]);
  counter.check(1000, 1200);
  counter.check(1000, 1300);
  t.same(counts(), [1, 0]);
  counter.check(1000, 2000);
  counter.check(1000, 2500);
  t.same(counts(), [1, 1]);
  counter.check(2510, 2600);
  t.same(counts(), [1, 1], 'it is alive again');
  counter.check(2510, 4000);
  t.same(counts(), [2, 2]);
  t.equal(store.value('workers.watchdog_miss'), 2);
});

t.test('heartbeats occur twice within the shortest limit', async (t) => {
  const heartbeat = (config: ConstructorParameters<typeof Watchdog>[2]) =>
    new Watchdog(new StatsStore({ workers: 2 }), 2, config).heartbeat.everyMs;
  t.equal(heartbeat(undefined), 100);
  t.equal(heartbeat({ worker_watchdog: { miss_timeout: '2s', megamiss_timeout: '0.5s' } }), 250);
  t.equal(heartbeat({ worker_watchdog: { miss_timeout: '0.0001s' } }), 1);
});
