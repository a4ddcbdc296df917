// One module that runs on this thread: its instance, its contexts, and calls in both directions.
//
// A trap, an overflow of the stack or an error of the host ends the VM: nothing calls it again.

import { getLogger, messageOf } from '../../sdk.js';
import type { Signature } from '../abi.js';
import { type CheckedModule, ModuleError } from '../module/index.js';
import type { VmServices } from './services.js';
import { VmMemory } from './vm-memory.js';
import {
  Instance,
  Module,
  type WasmFunction,
  type WasmImports,
  type WasmInstance,
  type WasmMemory,
} from './web-assembly.js';

const logger = getLogger('wasm');

/** What a VM is made from. */
export interface VmSettings {
  readonly vmId: string;
  /** Equal for plugins that share a VM. */
  readonly key: string;
  readonly configuration: Buffer;
  readonly module: CheckedModule;
  /** `NAME=value`. */
  readonly environment: readonly string[];
  /** Functions that the module may call or export; undefined: all. */
  readonly allowed: ReadonlySet<string> | undefined;
}

/** A context of the module, as the VM needs it. */
export interface VmContext {
  readonly id: number;
  /** Called when the VM has ended because the module has failed. */
  vmFailed(): void;
}

/** A function that modules import. Numbers of 64 bits are bigints. */
export interface HostFunction<C extends VmContext> {
  readonly signature: Signature;
  readonly call: (vm: WasmVm<C>, ...values: never[]) => number | undefined;
}

export type HostFunctions<C extends VmContext> = (module: string, name: string) => HostFunction<C> | undefined;

/** Of one VM; an HTTP request has one context for each plugin. */
const MAX_ACTIONS = 10_000;

export class WasmVm<C extends VmContext = VmContext> {
  readonly settings: VmSettings;
  readonly services: VmServices;
  readonly contexts = new Map<number, C>();
  /** The context of calls before there is a plugin. */
  readonly first: C;
  /** Why it ended; undefined: it runs. */
  failure: string | undefined;
  readonly memory: VmMemory;
  readonly #exports: Readonly<Record<string, unknown>>;
  readonly #deferred: (() => void)[] = [];
  #current: C;
  #effective = 0;
  #depth = 0;
  #nextId = 1;
  #isStarting = true;
  /** The contexts have been notified of the failure. */
  #isNotified = false;

  /** Instantiates and initializes the module. Throws an Error whose message is Envoy's. */
  constructor(
    settings: VmSettings,
    services: VmServices,
    functions: HostFunctions<C>,
    createFirst: (vm: WasmVm<C>) => C,
  ) {
    this.settings = settings;
    this.services = services;
    this.first = createFirst(this);
    this.#current = this.first;
    this.contexts.set(0, this.first);
    this.memory = new VmMemory((length) => this.#allocate(length));
    this.#exports = this.#instantiate(functions).exports;
    if (settings.module.hasMemory) this.memory.source = this.#exports['memory'] as WasmMemory;
    this.#start();
    this.#isStarting = false;
    if (this.failure !== undefined) throw new Error(this.failure);
  }

  get hasFailed(): boolean {
    return this.failure !== undefined;
  }

  /** A function of the module is running. */
  get isRunning(): boolean {
    return this.#depth > 0;
  }

  /** The context that host functions act on. */
  get context(): C {
    return (this.#effective === 0 ? undefined : this.contexts.get(this.#effective)) ?? this.#current;
  }

  setEffectiveContext(id: number): boolean {
    if (!this.contexts.has(id)) return false;
    this.#effective = id;
    return true;
  }

  /** Returns the number of a new context. */
  nextId(): number {
    while (this.contexts.has(this.#nextId)) this.#nextId = (this.#nextId + 1) >>> 0 || 1;
    const id = this.#nextId;
    this.#nextId = (id + 1) >>> 0 || 1;
    return id;
  }

  has(name: string): boolean {
    return typeof this.#exports[name] === 'function' && this.allows(name);
  }

  allows(name: string): boolean {
    const { allowed } = this.settings;
    return allowed === undefined || !name.startsWith('proxy_on_') || name === MEMORY_ALLOCATE || allowed.has(name);
  }

  /**
   * Calls a function of the module in a context, and then does what it has deferred. Returns undefined when the module has no
   * such function, or the VM has ended.
   */
  call(context: C, name: string, ...values: number[]): number | undefined {
    if (this.failure !== undefined || !this.has(name)) return undefined;
    const before = this.#current;
    const effective = this.#effective;
    this.#current = context;
    this.#effective = 0;
    this.#depth++;
    let result: number | undefined;
    try {
      result = this.#run(name, values);
    } finally {
      this.#depth--;
      this.#current = before;
      this.#effective = effective;
    }
    if (this.#depth > 0) return result;
    this.#runDeferred();
    if (this.failure !== undefined) this.#notify();
    return result;
  }

  /** Runs an action after the running call of the module. Returns false if there are too many, which ends the VM. */
  defer(action: () => void): boolean {
    if (this.#deferred.length >= MAX_ACTIONS) {
      this.fail(`more than ${MAX_ACTIONS} actions in one call`);
      return false;
    }
    this.#deferred.push(action);
    return true;
  }

  fail(message: string): void {
    if (this.failure !== undefined) return;
    this.failure = message;
    logger.error(message);
  }

  // ── Inside ───────────────────────────────────────────────────────────────────────────────────────────────────────

  #run(name: string, values: number[]): number | undefined {
    try {
      const result = (this.#exports[name] as WasmFunction)(...values);
      return this.failure === undefined && result !== undefined ? Number(result) : undefined;
    } catch (error) {
      this.fail(`Function: ${name} failed: Uncaught ${errorText(error)}`);
      return undefined;
    }
  }

  #notify(): void {
    if (this.#isNotified) return;
    this.#isNotified = true;
    for (const context of [...this.contexts.values()]) context.vmFailed();
  }

  #runDeferred(): void {
    for (let action = this.#deferred.shift(); action !== undefined; action = this.#deferred.shift()) action();
  }

  #allocate(length: number): number | undefined {
    const name = typeof this.#exports['malloc'] === 'function' ? 'malloc' : MEMORY_ALLOCATE;
    const pointer = (this.#exports[name] as WasmFunction)(length);
    return pointer === undefined || Number(pointer) === 0 ? undefined : Number(pointer) >>> 0;
  }

  #instantiate(functions: HostFunctions<C>): WasmInstance {
    const { module } = this.settings;
    const imports: WasmImports = {};
    for (const { module: from, name } of module.imports) {
      imports[from] ??= {};
      imports[from][name] = this.#hostFunction(functions(from, name)!, from, name) as (...values: never[]) => unknown;
    }
    let compiled: InstanceType<typeof Module>;
    try {
      compiled = new Module(module.bytes);
    } catch (error) {
      throw new ModuleError(`Failed to load Wasm bytecode: ${messageOf(error)}`);
    }
    return new Instance(compiled, imports);
  }

  #hostFunction({ call, signature }: HostFunction<C>, from: string, name: string): WasmFunction {
    const { allowed } = this.settings;
    if (allowed?.has(name) === false && !ALWAYS_ALLOWED.has(name)) {
      return () => {
        logger.error(`Attempted call to restricted proxy-wasm capability: ${name}`);
        return signature.endsWith('>') ? undefined : from === 'env' ? RESTRICTED : RESTRICTED_BY_WASI;
      };
    }
    const bound = call.bind(undefined, this) as WasmFunction;
    // As in Envoy, a module that is initialized can only use its runtime's functions and the log.
    if (!name.startsWith('proxy_') || name === 'proxy_log') return bound;
    return (...values) => {
      if (this.#isStarting) throw new Error('restricted_callback');
      return bound(...values);
    };
  }

  #start(): void {
    this.#depth++;
    if (typeof this.#exports['_initialize'] === 'function') {
      this.#run('_initialize', []);
      if (this.failure === undefined && typeof this.#exports['main'] === 'function') this.#run('main', [0, 0]);
    } else if (typeof this.#exports['_start'] === 'function') this.#run('_start', []);
    this.#depth--;
    this.#runDeferred();
  }
}

const MEMORY_ALLOCATE = 'proxy_on_memory_allocate';
/** Of toolchains; a configuration cannot restrict them. */
const ALWAYS_ALLOWED: ReadonlySet<string> = new Set(['pthread_equal', 'emscripten_notify_memory_growth']);
/** What a restricted function returns. */
const RESTRICTED = 10;
const RESTRICTED_BY_WASI = 76;

/** Returns an error as V8 prints it: `RuntimeError: unreachable`. */
function errorText(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : messageOf(error);
}
