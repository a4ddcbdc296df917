// Renders values of any size as compact JSON in pieces, none of which takes long to produce.

import { type Element, LazyList } from '../json.js';

/** Approximate maximum number of values per piece. */
const PIECE_VALUES = 500;

/** Renders a JSON value. Undefined members are omitted, as by JSON.stringify(). */
export function* compactJson(value: unknown): Generator<string, void> {
  if (value instanceof LazyList) {
    yield* compactList(elementsOf(value));
  } else if (typeof value !== 'object' || value === null || isSmall(value)) {
    yield JSON.stringify(value);
  } else if (Array.isArray(value)) {
    yield* compactList(elementsOf(value));
  } else {
    yield* compactObject(Object.entries(value));
  }
}

/** Renders an object with its members in order; undefined members are omitted. */
export function* compactObject(members: Iterable<readonly [string, unknown]>): Generator<string, void> {
  let separator = '{';
  for (const [name, member] of members) {
    if (member === undefined) continue;
    yield `${separator}${JSON.stringify(name)}:`;
    yield* compactJson(member);
    separator = ',';
  }
  yield separator === '{' ? '{}' : '}';
}

/** Renders a list of elements given as texts, with an empty text for each skipped one. */
export function* compactList(elements: Iterable<Element>): Generator<string, void> {
  let separator = '[';
  for (const element of elements) {
    if (element === undefined) {
      yield '';
      continue;
    }
    yield separator;
    yield* element;
    separator = ',';
  }
  yield separator === '[' ? '[]' : ']';
}

function isSmall(value: object): boolean {
  return count(value, PIECE_VALUES) > 0;
}

/** Subtracts the number of values in `value` from `left`; returns 0 if there are more. */
function count(value: object, left: number): number {
  if (value instanceof LazyList) return 0;
  for (const member of Object.values(value)) {
    left--;
    if (typeof member === 'object' && member !== null) left = count(member, left);
    if (left <= 0) return 0;
  }
  return left;
}

function* elementsOf(list: Iterable<unknown>): Generator<Iterable<string>, void> {
  for (const element of list) yield compactJson(element ?? null);
}
