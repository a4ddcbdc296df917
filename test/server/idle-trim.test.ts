// Memory is returned to the kernel when the process becomes idle after work, and only then.

import t from 'tap';
import { IdleTrim } from '../../src/server/idle-trim.js';

t.test('memory is trimmed once after each time of work', async (t) => {
  let cpuMs = 100;
  let trims = 0;
  const trim = new IdleTrim({ cpuMs: () => cpuMs, shim: { trimMemory: () => trims++ } });
  const after = (ms: number) => {
    cpuMs += ms;
    trim.step();
    return trims;
  };
  t.equal(after(10), 0, 'nothing was done since the start');
  t.equal(after(4000), 0, 'busy');
  t.equal(after(10), 1, 'idle');
  t.equal(after(10), 1, 'still idle');
  t.equal(after(450), 1, 'little work');
  t.equal(after(450), 2, 'little work, twice');
  trim.close();
});
