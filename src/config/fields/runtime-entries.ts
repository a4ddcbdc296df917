// The keys and values of a static runtime layer. Nested maps become dotted keys.

import { isRecord } from '../../common/records.js';
import type { Struct } from '../generated/api.js';
import type { Path } from '../text/path.js';

export interface RuntimeEntry {
  /** `a.b` of { a: { b: … } } */
  readonly key: string;
  /** Path of the value, relative to the Struct. */
  readonly path: Path;
  /** A string, number, boolean or FractionalPercent, but also null and lists, which are invalid. */
  readonly value: unknown;
}

/** Yields all entries in order. An empty map, or one with a numerator or a denominator, is a value. */
export function* runtimeEntries(struct: Struct): Generator<RuntimeEntry, void> {
  for (const [name, value] of Object.entries(struct)) yield* entriesOf(name, [name], value);
}

/** Returns the entries with invalid values. */
export function wrongRuntimeValues(struct: Struct): { key: string; path: Path; what: string }[] {
  return Array.from(runtimeEntries(struct)).flatMap(({ key, path, value }) => {
    const what = value === null ? 'null' : Array.isArray(value) ? 'a list' : undefined;
    return what === undefined ? [] : [{ key, path, what }];
  });
}

function* entriesOf(key: string, path: Path, value: unknown): Generator<RuntimeEntry, void> {
  if (!isRecord(value) || isFraction(value)) {
    yield { key, path, value };
    return;
  }
  for (const [name, inner] of Object.entries(value)) yield* entriesOf(`${key}.${name}`, [...path, name], inner);
}

function isFraction(map: Readonly<Record<string, unknown>>): boolean {
  return Object.hasOwn(map, 'numerator') || Object.hasOwn(map, 'denominator') || Object.keys(map).length === 0;
}
