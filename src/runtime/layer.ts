// A runtime layer: named values. Later layers override earlier ones.

import { runtimeEntries } from '../config/fields/runtime-entries.js';
import type { Struct } from '../config/generated/api.js';
import { type RuntimeValue, valueOfJson } from './value.js';

/** Immutable, unless it is an AdminLayer. */
export interface Layer {
  readonly name: string;
  readonly values: ReadonlyMap<string, RuntimeValue>;
}

/** Returns the layer of a static_layer. If a key is given twice, as `a.b` and as `a: {b}`, the first one wins. */
export function staticLayer(name: string, struct: Struct): Layer {
  const values = new Map<string, RuntimeValue>();
  for (const { key, value } of runtimeEntries(struct)) {
    const read = valueOfJson(value);
    if (read !== undefined && !values.has(key)) values.set(key, read);
  }
  return { name, values };
}
