// The runtime data that the primary sends: the effective values of all keys, and later changes.

import type { RuntimeValue } from './value.js';

/** Plain, immutable data. */
export interface RuntimeSnapshot {
  /** Grows with each change. */
  readonly version: number;
  readonly values: ReadonlyMap<string, RuntimeValue>;
}

/** The keys whose values have changed since the previous version; undefined: the key was removed. */
export interface RuntimeChange {
  readonly version: number;
  readonly entries: readonly (readonly [key: string, value: RuntimeValue | undefined])[];
}

/** Runtime without layers. */
export const NO_RUNTIME: RuntimeSnapshot = { version: 0, values: new Map() };
