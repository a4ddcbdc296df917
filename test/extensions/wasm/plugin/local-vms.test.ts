// What a plugin has started ends with it.

import t from 'tap';
import type { Timer } from '../../../../src/extensions/sdk.js';
import { Result } from '../../../../src/extensions/wasm/abi.js';
import { LocalVms } from '../../../../src/extensions/wasm/plugin/local-vms.js';
import { readPlugin } from '../../../../src/extensions/wasm/plugin/read-plugin.js';
import { trialServices } from '../../../../src/extensions/wasm/plugin/trial.js';
import { callback, wasmModule } from '../../../e2e/harness/wasm-module.js';

const pluginOf = (body: string, vmId = 'v') =>
  readPlugin({
    vm_config: { vm_id: vmId, code: { local: { inline_bytes: wasmModule(body).toString('base64') } } },
  });

function setUp() {
  const scheduled = new Set<Timer>();
  const services = {
    ...trialServices(),
    timers: {
      reschedule: (timer: Timer) => void scheduled.add(timer),
      cancel: (timer: Timer) => void scheduled.delete(timer),
    },
  };
  const counts = { vms: 0 };
  const vms = new LocalVms(services, { created: () => counts.vms++, removed: () => counts.vms-- });
  const fire = () => {
    for (const timer of [...scheduled]) {
      scheduled.delete(timer);
      timer.onTimer(timer.owner);
    }
  };
  return { counts, fire, scheduled, services, vms };
}

const TICKS = '(drop (call $set_tick_period_milliseconds (i32.const 10)))';

t.test('a module cannot tick after its end', async (t) => {
  const { counts, scheduled, vms } = setUp();
  const plugin = pluginOf(
    callback('configure', 2, `${TICKS} (i32.const 1)`) +
      callback('done', 1, `${TICKS} (i32.const 1)`) +
      `(func (export "proxy_on_delete") (param i32) ${TICKS})`,
  );
  const root = vms.acquire(plugin);
  t.equal(scheduled.size, 1);
  vms.release(plugin, root);
  t.same([scheduled.size, root.vm.contexts.has(root.id), counts.vms], [0, false, 0]);
});

t.test('a module delays its end until it calls proxy_done(), and for a limited time', async (t) => {
  const ticks = `(func (export "proxy_on_tick") (param i32) (drop (call $done)))`;
  const body = callback('configure', 2, `${TICKS} (i32.const 1)`) + callback('done', 1, '(i32.const 0)');
  for (const plugin of [pluginOf(body), pluginOf(body + ticks)]) {
    const { fire, scheduled, vms } = setUp();
    const root = vms.acquire(plugin);
    vms.release(plugin, root);
    t.ok(root.vm.contexts.has(root.id), 'it still runs');
    t.equal(scheduled.size, 2);
    fire();
    t.same([scheduled.size, root.vm.contexts.has(root.id)], [0, false]);
  }
});

t.test('shared data ends with the last VM of its vm_id', async (t) => {
  const { services, vms } = setUp();
  const sets = pluginOf(
    callback('configure', 2, '(drop (call $set_shared_data $S("key") $S("value") (i32.const 0))) (i32.const 1)'),
  );
  const other = pluginOf(callback('configure', 2, '(i32.const 1)'));
  const first = vms.acquire(sets);
  const second = vms.acquire(other);
  vms.release(sets, first);
  t.match(services.shared.get('v', 'key'), { value: Buffer.from('value') });
  vms.release(other, second);
  t.equal(services.shared.get('v', 'key'), Result.NotFound);
});

t.test('a stat that is defined again has the same number', async (t) => {
  const { vms } = setUp();
  const define = '(call $define_metric (i32.const 0) $S("count") (i32.const 820))';
  const plugin = pluginOf(
    callback(
      'configure',
      2,
      `(local $left i32) (local.set $left (i32.const 5000))
       (loop $l
         (if ${define} (then (return (i32.const 0))))
         (local.set $left (i32.sub (local.get $left) (i32.const 1)))
         (br_if $l (local.get $left)))
       (i32.const 1)`,
    ),
  );
  t.ok(vms.acquire(plugin));
});
