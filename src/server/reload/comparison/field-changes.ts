// Which fields differ between two values in canonical proto JSON form.

import { isDeepStrictEqual } from 'node:util';
import type { FieldChange } from '../../../admin/config-reload/reload-view.js';
import { isRecord } from '../../../common/records.js';
import { formatPath, type Path, type PathPart } from '../../../config/text/path.js';

/** A value with its place, and what may be shown of it: the same without what is secret. */
export interface Shown {
  readonly path: Path;
  /** Undefined: there is none. */
  readonly value: unknown;
  readonly shown: unknown;
}

export interface FieldChanges {
  readonly fields: readonly FieldChange[];
  /** How many there are; `fields` are the first of them. */
  readonly fieldCount: number;
}

/** After this many, the rest is only counted. */
export const MAX_FIELDS = 100;

/**
 * The smallest parts that differ. Elements of lists belong together that have the same name; where not all have names of
 * their own, those that stand between equal beginnings and ends, one after the other.
 */
export function fieldChanges(before: Shown, after: Shown): FieldChanges {
  const comparison = new Comparison();
  comparison.compare(before, after);
  return comparison;
}

/** A member of an object or an element of a list. */
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
    // Elements that are the same can stand in another order, which means something to filters and the like.
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

/** Of what is not shown at all it is said that there is something. */
function visible({ shown, value }: Shown): unknown {
  return value !== undefined && shown === undefined ? '[redacted]' : shown;
}

/** The names of all elements; undefined when one has none, or two have the same. */
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
