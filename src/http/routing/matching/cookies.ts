// Finds cookies of a request in place: `name=value` between semicolons (RFC 6265, 4.2.1).

const SEMICOLON = 59;
const EQUALS = 61;
const SPACE = 32;
const QUOTE = 34;

/** The range of a value, without its quotes. Each search reuses one object. */
export interface CookieValue {
  start: number;
  end: number;
}

/** Finds the first cookie `name` in the field value bytes[start, end) and sets `value` to its range. Returns whether there is one. */
export function findCookie(
  bytes: Uint8Array,
  start: number,
  end: number,
  name: Uint8Array,
  value: CookieValue,
): boolean {
  for (let at = start; at < end; at++) {
    while (at < end && bytes[at] === SPACE) at++;
    let i = 0;
    while (i < name.length && at + i < end && bytes[at + i] === name[i]) i++;
    const after = at + i;
    while (at < end && bytes[at] !== SEMICOLON) at++;
    if (i < name.length || bytes[after] !== EQUALS || after >= at) continue;
    const isQuoted = at - after > 2 && bytes[after + 1] === QUOTE && bytes[at - 1] === QUOTE;
    value.start = after + (isQuoted ? 2 : 1);
    value.end = isQuoted ? at - 1 : at;
    return true;
  }
  return false;
}
