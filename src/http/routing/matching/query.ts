// The query of a path, read in place: parameters between '&', a name before the first '='. Nothing is percent-decoded,
// because route matching compares what was sent.

const QUESTION = 63;
const HASH = 35;
const AMPERSAND = 38;
const EQUALS = 61;

/** Where the path proper ends: at '?' or '#', or at `end`. */
export function pathEndOf(bytes: Uint8Array, start: number, end: number): number {
  for (let at = start; at < end; at++) {
    const byte = bytes[at];
    if (byte === QUESTION || byte === HASH) return at;
  }
  return end;
}

/** Whether the path proper ends at `at`. */
export function endsPath(bytes: Uint8Array, at: number, end: number): boolean {
  return at === end || bytes[at] === QUESTION || bytes[at] === HASH;
}

/** A parameter that was found: where its value stands. One object, used again by each search. */
export interface QueryValue {
  start: number;
  end: number;
}

/** Finds the first parameter `name` in the query of the path bytes[start, end), and puts its value's place into `value`. */
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
