// The export of counters from a parent to its child: every count once, whenever it is counted and whatever is reset.

import t from 'tap';
import { StatsExport } from '../../../src/server/restart/stats-export.js';
import { NO_HOLDINGS } from '../../../src/server/stats/server-stats.js';
import { defineLayout } from '../../../src/stats/layout.js';
import { StatsStore } from '../../../src/stats/store.js';
import { ThreadStats } from '../../../src/stats/thread-stats.js';

const LAYOUT = defineLayout({ requests: 'counter' });

t.test('a count during an export is exported once', async (t) => {
  const store = new StatsStore({ workers: 1 });
  const scope = store.scope(store.addScope('of.scope.', LAYOUT));
  const worker = new ThreadStats(store.attachment(0));
  worker.addChunks(store.chunksSince(0));
  const named = worker.dynamicCounter('of.', 'traffic');
  const count = (times: number) => {
    scope.add(LAYOUT.at.requests, times);
    named.add(times);
  };
  const stats = new StatsExport(store, () => undefined);
  const exported = new Map<string, number>();
  /** `meanwhile` runs when the counters have been latched. */
  const tell = async (meanwhile = () => {}) => {
    const pieces = stats.pieces(NO_HOLDINGS);
    const first = pieces.next();
    meanwhile();
    const rest = [];
    for await (const piece of pieces) rest.push(piece);
    for (const { sections } of [(await first).value!, ...rest]) {
      for (const { prefix, counters, deltas } of sections) {
        for (const [i, name] of counters.entries()) {
          exported.set(prefix + name, (exported.get(prefix + name) ?? 0) + deltas[i]!);
        }
      }
    }
    return Object.fromEntries(exported);
  };
  count(7);
  store.resetCounters();
  count(3);
  t.same(await tell(() => count(1)), { 'of.scope.requests': 3, 'of.traffic': 3 });
  t.same(await tell(() => count(1)), { 'of.scope.requests': 4, 'of.traffic': 4 });
  t.same(await tell(), { 'of.scope.requests': 5, 'of.traffic': 5 });
});
