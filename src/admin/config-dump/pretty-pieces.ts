// Renders values of any size as JSON with an indentation of one space, in pieces, none of which takes long to produce.

import { type Element, type JsonValue, LazyList, prettyJson } from '../json.js';

/** Approximate maximum number of values per piece. */
const PIECE_VALUES = 500;

/**
 * Renders a JSON value whose first line is indented by `depth` spaces. Undefined members are omitted, as by JSON.stringify().
 */
export function* prettyPieces(value: unknown, depth = 0): Generator<string, void> {
  if (value instanceof LazyList) {
    yield* prettyElements(elementsOf(value, depth + 1), depth);
  } else if (typeof value !== 'object' || value === null || isSmall(value)) {
    yield prettyJson(value as JsonValue, depth);
  } else if (Array.isArray(value)) {
    yield* prettyElements(elementsOf(value, depth + 1), depth);
  } else {
    yield* prettyMembers(Object.entries(value), depth);
  }
}

/** Renders an object with its members in order; undefined members are omitted. */
export function* prettyMembers(members: Iterable<readonly [string, unknown]>, depth: number): Generator<string, void> {
  let separator = '{';
  for (const [name, member] of members) {
    if (member === undefined) continue;
    yield `${separator}${lineStart(depth + 1)}${JSON.stringify(name)}: `;
    yield* prettyPieces(member, depth + 1);
    separator = ',';
  }
  yield separator === '{' ? '{}' : `${lineStart(depth)}}`;
}

/** Renders a list of elements, which are texts for `depth` + 1; yields an empty text for each skipped one. */
export function* prettyElements(elements: Iterable<Element>, depth: number): Generator<string, void> {
  let separator = '[';
  for (const element of elements) {
    if (element === undefined) {
      yield '';
      continue;
    }
    yield `${separator}${lineStart(depth + 1)}`;
    yield* element;
    separator = ',';
  }
  yield separator === '[' ? '[]' : `${lineStart(depth)}]`;
}

/** Returns a line end and an indentation. */
export function lineStart(depth: number): string {
  return `\n${' '.repeat(depth)}`;
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

function* elementsOf(list: Iterable<unknown>, depth: number): Generator<Iterable<string>, void> {
  for (const element of list) yield prettyPieces(element ?? null, depth);
}
