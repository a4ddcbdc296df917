// Finds the fields that differ between two values in canonical proto JSON form.

import { isDeepStrictEqual } from 'node:util';
import type { FieldChange } from '../../../admin/config-reload/reload-view.js';
import { isRecord } from '../../../common/records.js';
import { formatPath, type Path, type PathPart } from '../../../config/text/path.js';

/** A value with its path, and the form in which it is shown: the same without secrets. */
export interface Shown {
  readonly path: Path;
  /** Undefined for an absent value. */
  readonly value: unknown;
  readonly shown: unknown;
}

export interface FieldChanges {
  readonly fields: readonly FieldChange[];
  /** Number of changes; `fields` has the first of them. */
  readonly fieldCount: number;
}

/** Changes beyond this number are only counted. */
export const MAX_FIELDS = 100;

/**
 * Returns the smallest parts that differ. Elements of lists are matched by name. In lists where not all elements have unique
 * names, those between the equal beginnings and ends are matched in order.
 */
export function fieldChanges(before: Shown, after: Shown): FieldChanges {
  const comparison = new Comparison();
  comparison.compare(before, after);
  return comparison;
}

/** Returns a member of an object or an element of a list. */
export function part({ path, shown, value }: Shown, key: PathPart): Shown {
  return { path: [...path, key], value: member(value, key), shown: member(shown, key) };
}

class Comparison implements FieldChanges {
  readonly fields: FieldChange[] = [];
  fieldCount = 0;

  compare(before: Shown, after: Shown): void {
    const [one, other] = [before.value, after.value];
    if (Array.isArray(one) && Array.isArray(other)) this.#lists(before, one, after, other);
    else if (isRecord(one) && isRecord(other) && one['@type'] === other['@type']) {
      for (const key of new Set([...Object.keys(one), ...Object.keys(other)])) {
        this.compare(part(before, key), part(after, key));
      }
    } else if (!isDeepStrictEqual(one, other)) this.#note(before, after);
  }

  #lists(before: Shown, one: readonly unknown[], after: Shown, other: readonly unknown[]): void {
    const names = namesOf(one);
    const otherNames = namesOf(other);
    if (names !== undefined && otherNames !== undefined) this.#named(before, names, after, otherNames);
    else this.#unnamed(before, one, after, other);
  }

  #named(before: Shown, names: readonly string[], after: Shown, otherNames: readonly string[]): void {
    const places = new Map(names.map((name, index) => [name, index]));
    otherNames.forEach((name, index) => {
      const place = places.get(name);
      this.compare(place === undefined ? missing(after, index) : part(before, place), part(after, index));
    });
    const others = new Set(otherNames);
    names.forEach((name, index) => {
      if (!others.has(name)) this.compare(part(before, index), missing(before, index));
    });
    const kept = names.filter((name) => others.has(name));
    const otherKept = otherNames.filter((name) => places.has(name));
    if (isDeepStrictEqual(kept, otherKept)) return;
    // The same elements may be in another order, which matters to filters, for example.
    this.#note({ ...before, shown: kept }, { ...after, shown: otherKept });
  }

  #unnamed(before: Shown, one: readonly unknown[], after: Shown, other: readonly unknown[]): void {
    const shorter = Math.min(one.length, other.length);
    let start = 0;
    while (start < shorter && isDeepStrictEqual(one[start], other[start])) start++;
    let end = 0;
    while (end < shorter - start && isDeepStrictEqual(one.at(-1 - end), other.at(-1 - end))) end++;
    const [last, otherLast] = [one.length - end, other.length - end];
    for (let index = start; index < Math.max(last, otherLast); index++) {
      const place = index < last ? part(before, index) : missing(before, index);
      this.compare(place, index < otherLast ? part(after, index) : missing(after, index));
    }
  }

  #note(before: Shown, after: Shown): void {
    this.fieldCount++;
    if (this.fields.length >= MAX_FIELDS) return;
    const path = formatPath(after.value === undefined ? before.path : after.path);
    this.fields.push({ path, before: visible(before), after: visible(after) });
  }
}

function missing({ path }: Shown, key: PathPart): Shown {
  return { path: [...path, key], value: undefined, shown: undefined };
}

/** Returns the shown value, or a placeholder for a value that is not shown at all. */
function visible({ shown, value }: Shown): unknown {
  return value !== undefined && shown === undefined ? '[redacted]' : shown;
}

/** Returns the names of all elements; undefined when one has none, or two are equal. */
function namesOf(list: readonly unknown[]): string[] | undefined {
  const names = list.flatMap((element) => {
    const name = member(element, 'name');
    return typeof name === 'string' && name !== '' ? [name] : [];
  });
  return names.length === list.length && new Set(names).size === names.length ? names : undefined;
}

function member(value: unknown, key: PathPart): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<PathPart, unknown>)[key] : undefined;
}
