// Modules that would use memory without a limit, or are damaged, are refused with a ModuleError and nothing else.

import t from 'tap';
import { hostSignature } from '../../../../src/extensions/wasm/host/index.js';
import { checkModule, ModuleError } from '../../../../src/extensions/wasm/module/index.js';
import { callback, says, wasmModule } from '../../../e2e/harness/wasm-module.js';

const check = (bytes: Buffer) => checkModule(bytes, hostSignature);
const BODY = callback('request_headers', 3, `${says('text')} (i32.const 0)`);

t.test('a memory and a table get a maximum', async (t) => {
  const { bytes } = check(wasmModule(`${BODY} (table 1 funcref)`));
  const module = new (
    globalThis as unknown as { WebAssembly: { Module: new (bytes: Buffer) => object } }
  ).WebAssembly.Module(bytes);
  t.ok(module, 'V8 compiles the changed module');
});

t.test('modules that begin with too much are refused', async (t) => {
  t.throws(() => check(wasmModule(BODY, { pages: '5000' })), /its memory begins with 5000 pages/);
  t.throws(() => check(wasmModule(`${BODY} (table 2000000 funcref)`)), /a table begins with 2000000 entries/);
});

t.test('damaged modules are refused', async (t) => {
  const whole = wasmModule(BODY);
  let others = 0;
  const isHandled = (bytes: Buffer) => {
    try {
      check(bytes);
    } catch (error) {
      if (!(error instanceof ModuleError)) others++;
    }
  };
  for (let length = 0; length < whole.length; length++) isHandled(whole.subarray(0, length));
  for (let at = 0; at < whole.length; at++) {
    for (const value of [0, 0x7f, 0x80, 0xff]) {
      const changed = Buffer.from(whole);
      changed[at] = value;
      isHandled(changed);
    }
  }
  t.equal(others, 0);
});
