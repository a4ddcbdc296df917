// Modules of the proxy-wasm ABI for tests, written as WebAssembly text.

import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import wabtInit from 'wabt';

const wabt = await wabtInit();

export interface WasmModuleOptions {
  /** The exported version; null: none. */
  readonly abi?: string | null;
  /** Allocates memory for the host. Default: true. */
  readonly allocates?: boolean;
  /** Imports besides those of `env` that the body calls. */
  readonly imports?: string;
  /** Pages of memory. Default: 2. */
  readonly pages?: string;
}

/** Number of 32-bit parameters of host functions, by their names without `proxy_`. */
const HOST_FUNCTIONS: Readonly<Record<string, number>> = {
  log: 3,
  get_log_level: 1,
  get_status: 3,
  get_property: 4,
  set_property: 4,
  continue_stream: 1,
  close_stream: 1,
  send_local_response: 8,
  get_header_map_value: 5,
  add_header_map_value: 5,
  replace_header_map_value: 5,
  remove_header_map_value: 3,
  get_header_map_pairs: 3,
  set_header_map_pairs: 3,
  get_header_map_size: 2,
  get_buffer_bytes: 5,
  get_buffer_status: 3,
  set_buffer_bytes: 5,
  http_call: 10,
  define_metric: 4,
  get_metric: 2,
  get_shared_data: 5,
  set_shared_data: 5,
  register_shared_queue: 3,
  resolve_shared_queue: 5,
  enqueue_shared_queue: 3,
  dequeue_shared_queue: 3,
  set_tick_period_milliseconds: 1,
  get_current_time_nanoseconds: 1,
  set_effective_context: 1,
  call_foreign_function: 6,
  done: 0,
};

/**
 * Returns the bytes of a module whose functions are `body`: WebAssembly text in which `$S("text")` stands for pointer and length of a
 * text, and `$name` calls proxy_name(). There is room for results at 800 to 1000: $out logs the text whose place and length are at 800
 * and 804, and $num logs a number.
 */
export function wasmModule(body: string, options: WasmModuleOptions = {}): Buffer {
  const { abi = '0_2_1', allocates = true, imports = '', pages = '2' } = options;
  const texts = new Texts();
  const functions = `${body} ${LOGGERS}`.replace(/\$S\("((?:[^"\\]|\\.)*)"\)/g, (_, text: string) => texts.place(text));
  const text = `(module
    ${hostImports(functions)} ${imports}
    (memory (export "memory") ${pages})
    (global $heap (mut i32) (i32.const 65536))
    ${allocates ? ALLOCATE : ''}
    ${abi === null ? '' : `(func (export "proxy_abi_version_${abi}"))`}
    ${texts.data()} ${functions})`;
  const module = wabt.parseWat('module.wat', text);
  module.resolveNames();
  module.validate();
  const { buffer } = module.toBinary({});
  module.destroy();
  return Buffer.from(buffer);
}

/** Writes a module to a file of its own, and returns its path. */
export function wasmFile(folder: string, body: string, options?: WasmModuleOptions): string {
  const path = join(mkdtempSync(join(folder, 'module-')), 'module.wasm');
  writeFileSync(path, wasmModule(body, options));
  return path;
}

/** Returns pairs in the form of the ABI as the text of a data segment, and their length. */
export function wasmPairs(...texts: readonly string[]): { readonly data: string; readonly length: number } {
  const head = Buffer.alloc(4 + texts.length * 4);
  head.writeUInt32LE(texts.length / 2, 0);
  texts.forEach((text, index) => void head.writeUInt32LE(Buffer.byteLength(text), 4 + index * 4));
  const bytes = Buffer.concat([head, ...texts.map((text) => Buffer.from(`${text}\0`))]);
  return { data: escaped(bytes), length: bytes.length };
}

/** Calls that the functions of a body may use: they log a text or a number. */
export const says = (text: string) => `(drop (call $log (i32.const 2) $S("${text}")))`;
export const saysNumber = (expression: string) => `(call $num ${expression})`;

/** Returns an exported callback with 32-bit parameters and a result. */
export function callback(name: string, parameters: number, body: string): string {
  return `(func (export "proxy_on_${name}") (param${' i32'.repeat(parameters)}) (result i32) ${body})`;
}

const ALLOCATE = `(func (export "proxy_on_memory_allocate") (param $n i32) (result i32) (local $p i32)
  (local.set $p (global.get $heap))
  (global.set $heap (i32.add (global.get $heap) (i32.and (i32.add (local.get $n) (i32.const 7)) (i32.const -8))))
  (if (i32.gt_u (global.get $heap) (i32.mul (memory.size) (i32.const 65536)))
    (then (drop (memory.grow (i32.add (i32.const 1) (i32.div_u (local.get $n) (i32.const 65536)))))))
  (local.get $p))`;

const LOGGERS = `(func $num (param $v i32) (local $p i32)
    (local.set $p (i32.const 900))
    (loop $l
      (local.set $p (i32.sub (local.get $p) (i32.const 1)))
      (i32.store8 (local.get $p) (i32.add (i32.const 48) (i32.rem_u (local.get $v) (i32.const 10))))
      (local.set $v (i32.div_u (local.get $v) (i32.const 10)))
      (br_if $l (local.get $v)))
    (drop (call $log (i32.const 2) (local.get $p) (i32.sub (i32.const 900) (local.get $p)))))
  (func $out (drop (call $log (i32.const 2) (i32.load (i32.const 800)) (i32.load (i32.const 804)))))`;

function hostImports(functions: string): string {
  const uses = (name: string) => new RegExp(`\\$${name}[\\s)]`).test(functions);
  const imports = Object.entries(HOST_FUNCTIONS)
    .filter(([name]) => uses(name))
    .map(([name, count]) => imported(name, count === 0 ? '' : `(param${' i32'.repeat(count)})`));
  for (const name of ['increment_metric', 'record_metric'])
    if (uses(name)) imports.push(imported(name, '(param i32 i64)'));
  return imports.join('\n');
}

function imported(name: string, parameters: string): string {
  return `(import "env" "proxy_${name}" (func $${name} ${parameters} (result i32)))`;
}

/** Texts in the module's memory, from 1024 on. */
class Texts {
  readonly #places = new Map<string, { readonly at: number; readonly bytes: Buffer }>();
  #next = 1024;

  place(text: string): string {
    let place = this.#places.get(text);
    if (place === undefined) {
      place = { at: this.#next, bytes: Buffer.from(text.replaceAll('\\0', '\0').replaceAll('\\n', '\n')) };
      this.#places.set(text, place);
      this.#next += place.bytes.length;
    }
    return `(i32.const ${place.at}) (i32.const ${place.bytes.length})`;
  }

  data(): string {
    return [...this.#places.values()].map(({ at, bytes }) => `(data (i32.const ${at}) "${escaped(bytes)}")`).join('\n');
  }
}

function escaped(bytes: Buffer): string {
  return [...bytes].map((byte) => `\\${byte.toString(16).padStart(2, '0')}`).join('');
}
