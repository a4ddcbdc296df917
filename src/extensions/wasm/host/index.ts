// The functions that modules import, by module and name.

import type { AbiVersion, Signature } from '../abi.js';
import { BUFFER_FUNCTIONS } from './buffer-functions.js';
import { CALL_FUNCTIONS } from './call-functions.js';
import { CONTEXT_FUNCTIONS } from './context-functions.js';
import { HEADER_FUNCTIONS } from './header-functions.js';
import type { AbiFunction, HostTable } from './host-function.js';
import { METRIC_FUNCTIONS } from './metric-functions.js';
import { SHARED_FUNCTIONS } from './shared-functions.js';
import { WASI_FUNCTIONS } from './wasi-functions.js';

const ENV: HostTable = {
  ...BUFFER_FUNCTIONS,
  ...CALL_FUNCTIONS,
  ...CONTEXT_FUNCTIONS,
  ...HEADER_FUNCTIONS,
  ...METRIC_FUNCTIONS,
  ...SHARED_FUNCTIONS,
};

/** Returns a host function; undefined: there is none. */
export function hostFunction(module: string, name: string): AbiFunction | undefined {
  const table = module === 'env' ? ENV : WASI.has(module) ? WASI_FUNCTIONS : {};
  return Object.hasOwn(table, name) ? table[name] : undefined;
}

/** Returns the signature of a host function that the version has. */
export function hostSignature(module: string, name: string, abi: AbiVersion): Signature | undefined {
  const found = hostFunction(module, name);
  return found?.versions?.includes(abi) === false ? undefined : found?.signature;
}

/** All functions, as modules import them: module and name. */
export const HOST_FUNCTIONS: readonly (readonly [module: string, name: string])[] = [
  ...Object.keys(ENV).map((name) => ['env', name] as const),
  ...Object.keys(WASI_FUNCTIONS).map((name) => ['wasi_snapshot_preview1', name] as const),
];

const WASI: ReadonlySet<string> = new Set(['wasi_unstable', 'wasi_snapshot_preview1']);
