// What the primary sends of runtime: all values as they are now, the topmost layer's of each key, and what changes afterwards.

import type { RuntimeValue } from './value.js';

/** Plain data; never changes once it is made. */
export interface RuntimeSnapshot {
  /** Grows with each change. */
  readonly version: number;
  readonly values: ReadonlyMap<string, RuntimeValue>;
}

/** The keys whose values are other ones than in the version before, with their values; undefined: there is none any more. */
export interface RuntimeChange {
  readonly version: number;
  readonly entries: readonly (readonly [key: string, value: RuntimeValue | undefined])[];
}

/** Runtime without any layer. */
export const NO_RUNTIME: RuntimeSnapshot = { version: 0, values: new Map() };
