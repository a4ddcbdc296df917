// The typed interface of the native module with Lua VMs (native-shim/src/lua). Only threads with Lua scripts load it.
//
// Strings are bytes, one character for each. From JavaScript to Lua: undefined and null become nil, an array several values, an object with
// the property `lua` an object of that class, LuaTable a table, YIELD suspends the script. From Lua to JavaScript: a table becomes an array
// of its keys and values in turn, a value that cannot be passed { type }.

import { loadNative } from '../common/package/native-code.js';
import { packagePath } from '../common/package/package-root.js';
import { BUILD_FOLDER } from './shim.js';

/** The value of a method that suspends the script until resume(). */
export const YIELD = { lua: -1 } as const;

/** A table for Lua. */
export class LuaTable {
  /** Keys and values in turn. */
  readonly entries: readonly unknown[];

  constructor(entries: readonly unknown[]) {
    this.entries = entries;
  }

  get lua(): -2 {
    return -2;
  }
}

/** An error about the argument at `argument`, which counts the object as the first one; 0: about none. */
export class LuaError extends Error {
  constructor(
    message: string,
    readonly argument = 0,
  ) {
    super(message);
  }
}

/** How a run of a script has ended: the low bits of what start() returns. */
export const enum LuaOutcome {
  Ended = 0,
  Yielded = 1,
  /** message() says why. */
  Failed = 2,
}

export const OUTCOME_BITS = 2;

/** The value of functionOf() without such a function. */
export const NO_FUNCTION = -1;

/**
 * A method: its name, its arguments, and the function, whose `this` is the object. A letter is an argument: s a string, n a number, t a table,
 * a anything; S and N may be absent. '*' alone: the method returns an object whose class has the method `next`, and the script gets a
 * function that calls that, for a `for` loop.
 */
export type LuaMethod = readonly [name: string, signature: string, call: (...values: never[]) => unknown];

export interface LuaVm {
  /** Defines the next class of objects, whose numbers begin with 0. */
  define(methods: readonly LuaMethod[]): void;
  /** Runs a chunk. Throws an Error when it cannot be compiled or fails. */
  run(source: string, name: string): void;
  /** Returns a reference to a global function, or NO_FUNCTION. */
  functionOf(name: string): number;
  /** Begins a function in a coroutine of its own. Returns coroutine << OUTCOME_BITS | LuaOutcome. */
  start(reference: number, ...values: unknown[]): number;
  resume(coroutine: number, ...values: unknown[]): LuaOutcome;
  /** Frees a coroutine, ended or not. */
  release(coroutine: number): void;
  /** Why the last run has failed. */
  message(): string;
  memoryBytes(): number;
  /** Frees the VM now, and not when it is garbage. Every later call throws. Throws while a script runs. */
  close(): void;
}

interface NativeLua {
  createVm(memoryBytes: number, timeMs: number): LuaVm;
}

let module: NativeLua | undefined;

/**
 * Creates a VM. A script that needs more memory fails, and so does a run that takes more time than `timeMs`.
 * @throws BatonError INSTALLATION_BROKEN
 */
export function createLuaVm(memoryBytes: number, timeMs: number): LuaVm {
  module ??= loadNative('native-shim', packagePath(BUILD_FOLDER, 'lua.node')) as NativeLua;
  return module.createVm(memoryBytes, timeMs);
}
