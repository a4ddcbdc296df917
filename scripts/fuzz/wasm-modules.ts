// Wasm modules: mutated ones, which are refused with a ModuleError or tried for a limited time, and host functions that a module calls with
// pointers, lengths and numbers of its choice. They run in this process.

import type { Random } from '../../src/common/random.js';
import { HOST_FUNCTIONS, hostFunction } from '../../src/extensions/wasm/host/index.js';
import { ModuleError } from '../../src/extensions/wasm/module/index.js';
import { LocalVms } from '../../src/extensions/wasm/plugin/local-vms.js';
import type { Plugin } from '../../src/extensions/wasm/plugin/plugin.js';
import { readPlugin } from '../../src/extensions/wasm/plugin/read-plugin.js';
import { trialServices, tryPlugin } from '../../src/extensions/wasm/plugin/trial.js';
import { levelRules, setLevelRules } from '../../src/log/logger.js';
import { callback, says, wasmModule } from '../../test/e2e/harness/wasm-module.js';
import { mutateBytes, pick } from './mutation.js';
import { Finding, type Scope } from './scope.js';

/** Inputs between two looks at the clock. */
const MODULES_PER_STEP = 20;
const CALLS_PER_STEP = 2000;
const TRIAL_MS = 50;

/** Throws a Finding when a module or a call causes an exception that is not meant for it. Returns a summary. */
export async function fuzzWasmModules(scope: Scope, random: Random, durationMs: number): Promise<string> {
  const before = levelRules();
  scope.teardown(() => setLevelRules(before));
  setLevelRules({ level: 'off', components: [], overrides: [] });
  const end = performance.now() + durationMs;
  const counts = { modules: 0, accepted: 0, calls: 0 };
  let host = new Host();
  while (performance.now() < end) {
    for (let left = MODULES_PER_STEP; left > 0; left--, counts.modules++)
      if (isAccepted(mutateBytes(random, SEEDS, TOKENS))) counts.accepted++;
    for (let left = CALLS_PER_STEP; left > 0; left--, counts.calls++) host.call(random);
    if (host.hasEnded) host = new Host();
    await new Promise(setImmediate);
  }
  return `${counts.modules} modules, ${counts.accepted} of them accepted; ${counts.calls} calls to the host; no defect`;
}

function isAccepted(bytes: Buffer): boolean {
  let plugin: Plugin;
  try {
    plugin = pluginOf(bytes);
  } catch (error) {
    if (error instanceof ModuleError) return false;
    throw new Finding(`${(error as Error).stack} for ${bytes.toString('hex')}`);
  }
  try {
    tryPlugin(plugin, TRIAL_MS);
    return true;
  } catch (error) {
    if (error instanceof Error && !(error instanceof TypeError)) return false;
    throw new Finding(`${(error as Error).stack} for ${bytes.toString('hex')}`);
  }
}

/** A VM whose host functions are called as its module could. */
class Host {
  readonly #root = new LocalVms(trialServices(), { created() {}, removed() {} }).acquire(pluginOf(SEEDS[0]!));

  get hasEnded(): boolean {
    return this.#root.vm.hasFailed;
  }

  call(random: Random): void {
    const [module, name] = pick(random, HOST_FUNCTIONS);
    const { call, signature } = hostFunction(module, name)!;
    const types = signature.slice(0, signature.indexOf('>'));
    const values = [...types].map((type) => (type === 'l' ? BigInt(number(random)) : number(random)));
    try {
      const result: unknown = call(this.#root.vm, ...(values as never[]));
      if (result !== undefined && typeof result !== 'number') throw new Error(`it returns ${String(result)}`);
    } catch (error) {
      // A trap in the function of the module that allocates memory.
      if (error instanceof RuntimeError) return;
      throw new Finding(`${(error as Error).stack} for ${name}(${values.join(', ')})`);
    }
  }
}

function number(random: Random): number {
  switch (random.below(4)) {
    case 0:
      return random.below(16);
    case 1:
      return random.below(140_000);
    case 2:
      return pick(random, EDGES);
    default:
      return random.below(2 ** 31) - random.below(2 ** 31);
  }
}

const EDGES = [-1, -2, -8, 65_535, 65_536, 131_064, 131_071, 131_072, 2 ** 31 - 1, -(2 ** 31)];
const { RuntimeError } = (
  globalThis as unknown as { readonly WebAssembly: { readonly RuntimeError: ErrorConstructor } }
).WebAssembly;

function pluginOf(bytes: Buffer): Plugin {
  return readPlugin({ vm_config: { code: { local: { inline_bytes: bytes.toString('base64') } } } });
}

const SEEDS = [
  callback('configure', 2, '(i32.const 1)'),
  `(table 3 funcref) (global $g (mut i64) (i64.const 0)) ${callback('vm_start', 2, `${says('text')} (i32.const 1)`)}`,
  callback(
    'configure',
    2,
    '(drop (memory.grow (i32.const 1))) (call $get_buffer_bytes (i32.const 7) (i32.const 0) (i32.const 9) (i32.const 800) (i32.const 804))',
  ),
  callback('configure', 2, '(call $http_call $S("c") $S("\\0\\0\\0\\0") $S("") $S("") (i32.const 9) (i32.const 820))'),
].map((body) => wasmModule(body));

const TOKENS = [
  '\x00',
  '\x7f',
  '\x80\x80\x80\x80\x08',
  '\xff\xff\xff\xff\x0f',
  '\x03\x40\x0c\x00\x0b',
  '\x00asm\x01\x00\x00\x00',
  '\x05\x03\x01\x00\x02',
].map((text) => Buffer.from(text, 'latin1'));
