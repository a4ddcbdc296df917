// A module is tried for a limited time.

import t from 'tap';
import { readPlugin } from '../../../../src/extensions/wasm/plugin/read-plugin.js';
import { tryPlugin } from '../../../../src/extensions/wasm/plugin/trial.js';
import { callback, wasmModule } from '../../../e2e/harness/wasm-module.js';

const pluginOf = (body: string) =>
  readPlugin({
    vm_config: { code: { local: { inline_bytes: wasmModule(body).toString('base64') } } },
  });

const ENDLESS: Readonly<Record<string, string>> = {
  'a loop while it is initialized': '(func (export "_initialize") (loop $l (br $l)))',
  'a loop in its start function': '(func $begin (loop $l (br $l))) (start $begin)',
  'a loop in on_vm_start': callback('vm_start', 2, '(loop $l (br $l)) (i32.const 1)'),
  'a loop in on_configure': callback('configure', 2, '(loop $l (br $l)) (i32.const 1)'),
  'a loop with calls to the host': callback(
    'configure',
    2,
    '(loop $l (drop (call $log (i32.const 0) $S("text"))) (br $l)) (i32.const 1)',
  ),
};

for (const [what, body] of Object.entries(ENDLESS)) {
  t.test(`${what} does not block the reading of configurations`, async (t) => {
    t.throws(() => tryPlugin(pluginOf(body), 100), {
      message: 'its module has not started and taken its configuration within 0.1 s',
    });
  });
}

t.test('a module that ends is accepted, and one that refuses its configuration is not', async (t) => {
  tryPlugin(pluginOf(callback('configure', 2, '(i32.const 1)')));
  t.throws(() => tryPlugin(pluginOf(callback('configure', 2, '(i32.const 0)'))), {
    message: 'Failed to configure base Wasm plugin',
  });
});
