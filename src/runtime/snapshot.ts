// What the primary sends of runtime: all values as they are now, the topmost layer's of each key.

import type { RuntimeValue } from './value.js';

/** Plain data; never changes once it is made. */
export interface RuntimeSnapshot {
  /** Grows with each snapshot. */
  readonly version: number;
  readonly values: ReadonlyMap<string, RuntimeValue>;
}

/** Runtime without any layer. */
export const NO_RUNTIME: RuntimeSnapshot = { version: 0, values: new Map() };
