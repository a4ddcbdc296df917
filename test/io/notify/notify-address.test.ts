// The notification settings in the environment of a process.

import t from 'tap';
import { watchdogIntervalMs } from '../../../src/io/notify/notify-address.js';

t.test('the watchdog interval is limited to what a timer accepts', async (t) => {
  t.equal(watchdogIntervalMs({ WATCHDOG_USEC: '200000' }), 200);
  t.equal(watchdogIntervalMs({ WATCHDOG_USEC: '200000', WATCHDOG_PID: String(process.pid) }), 200);
  t.equal(watchdogIntervalMs({ WATCHDOG_USEC: '18446744073709551615' }), 2 ** 31 - 1, "infinity in systemd's units");
  for (const env of [{}, { WATCHDOG_USEC: '0' }, { WATCHDOG_USEC: 'x' }, { WATCHDOG_USEC: '1', WATCHDOG_PID: '1' }]) {
    t.equal(watchdogIntervalMs(env), undefined, JSON.stringify(env));
  }
});
