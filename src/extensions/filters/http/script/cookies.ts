// The Cookie field (RFC 6265 section 4.2).

/** Returns the value of the cookie `name` in a field; undefined: it is not there. */
export function cookieOf(field: string, name: string): string | undefined {
  for (const pair of field.split(';')) {
    const at = pair.indexOf('=');
    if (at < 0 || pair.slice(0, at).trim() !== name) continue;
    const value = pair.slice(at + 1).trim();
    return value.length > 1 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value;
  }
  return undefined;
}
