// JSON values as text that is equal for equal values, whatever the order of their fields.

/** A JSON value, whatever its origin. */
type Value = null | boolean | number | string | readonly Value[] | { readonly [name: string]: Value };

/** Values that are nested deeper have no text. */
const MAX_DEPTH = 32;

/** Returns undefined for a value that is nested too deeply to be compared, or has a number that JSON does not have. */
export function canonicalJson(value: Value, depth = 0): string | undefined {
  if (typeof value === 'number' && !Number.isFinite(value)) return undefined;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (depth === MAX_DEPTH) return undefined;
  const parts: string[] = [];
  if (Array.isArray(value)) {
    for (const element of value as readonly Value[]) {
      const text = canonicalJson(element, depth + 1);
      if (text === undefined) return undefined;
      parts.push(text);
    }
    return `[${parts.join()}]`;
  }
  const fields = value as { readonly [name: string]: Value };
  for (const name of Object.keys(fields).sort()) {
    const text = canonicalJson(fields[name]!, depth + 1);
    if (text === undefined) return undefined;
    parts.push(`${JSON.stringify(name)}:${text}`);
  }
  return `{${parts.join()}}`;
}
