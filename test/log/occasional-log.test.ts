// Lines that peers cause are written at a limited rate, with the number of omitted lines.

import t from 'tap';
import { OccasionalLog } from '../../src/log/occasional-log.js';

t.test('a period has a limited number of lines, and the next line reports how many were omitted', async (t) => {
  const lines: string[] = [];
  const log = new OccasionalLog((text) => lines.push(text), 2, 50);
  for (let count = 0; count < 10; count++) log.log(`line ${count}`);
  t.same(lines, ['line 0', 'line 1']);
  const end = performance.now() + 60;
  while (performance.now() < end);
  log.log('later');
  log.log('again');
  t.same(lines.slice(2), ['later (8 similar lines were omitted before it)', 'again']);
});
