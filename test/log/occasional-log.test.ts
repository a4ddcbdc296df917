// Lines that others cause are written now and then, with how many were not.

import t from 'tap';
import { OccasionalLog } from '../../src/log/occasional-log.js';

t.test('some lines are written in a period, and the first of the next one tells how many were not', async (t) => {
  const lines: string[] = [];
  const log = new OccasionalLog((text) => lines.push(text), 2, 50);
  for (let count = 0; count < 10; count++) log.log(`line ${count}`);
  t.same(lines, ['line 0', 'line 1']);
  const end = performance.now() + 60;
  while (performance.now() < end);
  log.log('later');
  log.log('again');
  t.same(lines.slice(2), ['later (8 such lines before it were left out)', 'again']);
});
