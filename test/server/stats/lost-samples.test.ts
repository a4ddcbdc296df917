import t from 'tap';
import { LostSamples } from '../../../src/server/stats/lost-samples.js';
import { StatsStore } from '../../../src/stats/store.js';
import { ThreadStats } from '../../../src/stats/thread-stats.js';
import { captureLog } from '../../admin/capture-log.js';

t.test('losses for lack of memory are logged, and rarely again', async (t) => {
  const log = captureLog(t);
  const store = new StatsStore({ workers: 1 });
  const worker = new ThreadStats(store.attachment(0));
  const losses = new LostSamples();
  losses.report(store.dropped());
  t.equal(log.text(), '', 'nothing is lost');
  const name = 'x'.repeat(4000);
  for (let made = 0; worker.dropped < 5; made++) {
    worker.dynamicCounter('lost.', `${name}${made}`).increment();
    losses.report(store.dropped());
  }
  const logged = log.text().match(/\b\d+ histogram samples or stat names were lost/g);
  t.same(
    logged?.map((text) => Number.parseInt(text, 10)),
    [1, 2, 4],
  );
});
