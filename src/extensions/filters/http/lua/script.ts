// One script: its VM on this thread, which is made when the script is first needed, and its functions.

import { createLuaVm, getLogger, type LuaVm, messageOf, NO_FUNCTION } from '../../../sdk.js';
import { API, PRELUDE } from './api.js';
import type { LoadedScript } from './loaded-script.js';
import { PublicKeys } from './objects/public-key.js';

const logger = getLogger('lua');

/** Memory limit of one VM. All VMs of a thread together have a limit too: see native-shim/src/lua/vm.cc. */
export const MEMORY_BYTES = 64 * 1024 * 1024;
/** Time limit of one run of a script, until it ends or waits: first by the clock, then as much processor time. */
export const RUN_MS = 100;

/** Where scripts look for modules. */
export interface PackagePaths {
  readonly paths: readonly string[];
}

/** A VM that scripts with the same shared_vm_id use. */
export interface VmSettings extends PackagePaths {
  readonly sharedId: string;
}

/** By shared_vm_id. A VM lasts as long as a script uses it. */
const sharedVms = new Map<string, WeakRef<LuaVm>>();

/** Between attempts to load a script that a worker could not load, perhaps because memory was short. */
const RETRY_MS = 1000;

export class LuaScript {
  readonly #code: string;
  readonly #settings: VmSettings;
  #loaded: LoadedScript | undefined;
  #retryMs = Number.NEGATIVE_INFINITY;

  /** `code`: one character per byte. */
  constructor(code: string, settings: VmSettings) {
    this.#code = code;
    this.#settings = settings;
  }

  /** Returns undefined for a script that could not be loaded, after a log line. `nowMs`: of the monotonic clock. */
  loaded(nowMs: number): LoadedScript | undefined {
    if (this.#loaded !== undefined || nowMs < this.#retryMs) return this.#loaded;
    try {
      this.#loaded = load(this.#code, this.#settings);
    } catch (error) {
      this.#retryMs = nowMs + RETRY_MS;
      logger.error(`script load error: ${messageOf(error)}`);
    }
    return this.#loaded;
  }
}

/**
 * Compiles and runs a script, which defines its functions.
 * @throws Error with the script's line
 */
export function load(code: string, { paths, sharedId }: VmSettings): LoadedScript {
  let vm = sharedId === '' ? undefined : sharedVms.get(sharedId)?.deref();
  if (vm === undefined) {
    vm = createLuaVm(MEMORY_BYTES, RUN_MS);
    for (const methods of API) vm.define(methods);
    vm.run(PRELUDE, '=baton');
    if (sharedId !== '') sharedVms.set(sharedId, new WeakRef(vm));
  }
  try {
    return loadIn(vm, code, paths);
  } catch (error) {
    if (sharedId === '') vm.close();
    throw error;
  }
}

/** Runs a script as load() does, and forgets it. Throws what load() throws. */
export function tryToLoad(code: string, paths: PackagePaths): void {
  load(code, { ...paths, sharedId: '' }).vm.close();
}

function loadIn(vm: LuaVm, code: string, paths: readonly string[]): LoadedScript {
  for (const path of paths) vm.run(`package.path = package.path .. ';' .. ${quoted(path)}`, '=package_paths');
  // A shared VM may have the functions of another script.
  vm.run('envoy_on_request, envoy_on_response = nil, nil', '=baton');
  vm.run(code, code);
  const onRequest = vm.functionOf('envoy_on_request');
  const onResponse = vm.functionOf('envoy_on_response');
  if (onRequest === NO_FUNCTION)
    logger.info('envoy_on_request() function not found. Lua filter will not hook requests.');
  if (onResponse === NO_FUNCTION)
    logger.info('envoy_on_response() function not found. Lua filter will not hook responses.');
  return { vm, keys: new PublicKeys(), onRequest, onResponse };
}

function quoted(text: string): string {
  return `'${text.replace(/[\\'\n\r\0]/g, (character) => `\\${character.charCodeAt(0).toString().padStart(3, '0')}`)}'`;
}
