// How host functions are described. Their arguments are 32-bit numbers, or bigints, that the module chooses freely.

import type { AbiVersion, Signature } from '../abi.js';
import type { Context, Vm } from '../contexts/context.js';
import type { HostFunction } from '../vm/wasm-vm.js';

export interface AbiFunction extends HostFunction<Context> {
  /** The versions that have it; undefined: all. */
  readonly versions: readonly AbiVersion[] | undefined;
}

export type HostTable = Readonly<Record<string, AbiFunction>>;

/** Describes a host function of the ABI versions `versions`. */
export function host(
  signature: Signature,
  call: (vm: Vm, ...values: never[]) => number | undefined,
  versions?: readonly AbiVersion[],
): AbiFunction {
  return { signature, call, versions };
}
