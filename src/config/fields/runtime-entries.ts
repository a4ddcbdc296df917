// The keys and values of a static runtime layer: what is nested gets a key with dots.

import { isRecord } from '../../common/records.js';
import type { Struct } from '../generated/api.js';
import type { Path } from '../text/path.js';

export interface RuntimeEntry {
  /** `a.b` of { a: { b: … } } */
  readonly key: string;
  /** Where the value stands, from the Struct on. */
  readonly path: Path;
  /** A text, number, flag or FractionalPercent; null and lists, which are no values, come out too. */
  readonly value: unknown;
}

/** All entries in the order of the text. A map that has a numerator or a denominator, or nothing, is a value. */
export function* runtimeEntries(struct: Struct): Generator<RuntimeEntry, void> {
  for (const [name, value] of Object.entries(struct)) yield* entriesOf(name, [name], value);
}

/** What cannot be a value. */
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
