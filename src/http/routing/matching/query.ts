// Finds query parameters in place: parameters between '&', a name before the first '='. Nothing is percent-decoded, because routes match
// the query as sent.

const QUESTION = 63;
const HASH = 35;
const AMPERSAND = 38;
const EQUALS = 61;

/** Returns where the path without query ends: at '?' or '#', or at `end`. */
export function pathEndOf(bytes: Uint8Array, start: number, end: number): number {
  for (let at = start; at < end; at++) {
    const byte = bytes[at];
    if (byte === QUESTION || byte === HASH) return at;
  }
  return end;
}

/** Returns whether the path without query ends at `at`. */
export function endsPath(bytes: Uint8Array, at: number, end: number): boolean {
  return at === end || bytes[at] === QUESTION || bytes[at] === HASH;
}

/** The range of a parameter's value. Each search reuses one object. */
export interface QueryValue {
  start: number;
  end: number;
}

/**
 * Finds the first parameter `name` in the query of the path bytes[start, end) and sets `value` to the range of its value. Returns whether
 * there is one.
 */
export function findQueryParameter(
  bytes: Uint8Array,
  start: number,
  end: number,
  name: Uint8Array,
  value: QueryValue,
): boolean {
  let at = start;
  while (at < end && bytes[at] !== QUESTION) at++;
  const length = name.length;
  for (at++; at < end; ) {
    let i = 0;
    while (i < length && at + i < end && bytes[at + i] === name[i]) i++;
    const after = at + i;
    while (at < end && bytes[at] !== AMPERSAND) at++;
    if (i === length && (after === at || bytes[after] === EQUALS)) {
      value.start = Math.min(after + 1, at);
      value.end = at;
      return true;
    }
    at++;
  }
  return false;
}
