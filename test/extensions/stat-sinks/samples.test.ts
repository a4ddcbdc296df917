// A server that reads a histogram's lines obtains the histogram's counts.

import fc from 'fast-check';
import t from 'tap';
import { eachSample, SAMPLES } from '../../../src/extensions/stat-sinks/lines/samples.js';
import { BINS } from '../../../src/stats/histograms/bins.js';
import { Distribution } from '../../../src/stats/histograms/distribution.js';

/** As in servers that truncate 1 / rate to an integer. */
function weightOf(rate: string): number {
  return rate === '' ? 1 : Math.trunc(1 / Number(rate.slice('|@'.length)));
}

t.test('few samples are sent without a rate', async (t) => {
  const lines: string[] = [];
  eachSample(new Distribution([0, 1 + 90 * 4], [1, 2]), (value, rate) => lines.push(`${value}${rate}`));
  t.same(lines, ['0', '105', '105']);
});

t.test('rates restore any counts, in a bounded number of lines', async () => {
  const bins = fc.uniqueArray(fc.integer({ min: 0, max: BINS - 1 }), { minLength: 1, maxLength: 50 });
  fc.assert(
    fc.property(
      bins,
      fc.array(fc.integer({ min: 1, max: 10_000_000 }), { minLength: 50, maxLength: 50 }),
      (all, counts) => {
        const sorted = all.sort((a, b) => a - b);
        const distribution = new Distribution(sorted, counts.slice(0, sorted.length));
        let lines = 0;
        let total = 0;
        eachSample(distribution, (_value, rate) => {
          lines++;
          total += weightOf(rate);
        });
        return total === distribution.count() && lines <= SAMPLES + sorted.length;
      },
    ),
  );
});
