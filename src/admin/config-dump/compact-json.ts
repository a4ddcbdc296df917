// Compact JSON of values of any size, piece by piece: no piece takes long to make.

import { type Element, LazyList } from '../json.js';

/** Values that a piece has at most, about. */
const PIECE_VALUES = 500;

/** The text of a value that JSON can hold. What is undefined is left out, as JSON.stringify() does. */
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

/** An object of members in their order; those that are undefined are left out. */
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

/** A list whose elements are texts, with an empty text for each that was passed over. */
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

/** What is left of `left` when the values in `value` are taken from it; 0 when there are more. */
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
