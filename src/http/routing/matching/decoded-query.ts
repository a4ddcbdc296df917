// Query parameters with their escapes decoded, as rate limits see them: "role=%61dmin" is role=admin. A plus sign stays.

/** Returns the value of the first parameter `name` of a path; undefined if there is none. One character per byte. */
export function decodedParameter(path: string, name: string): string | undefined {
  const start = path.indexOf('?');
  if (start < 0) return undefined;
  const end = path.indexOf('#', start);
  for (const parameter of path.slice(start + 1, end < 0 ? undefined : end).split('&')) {
    const equals = parameter.indexOf('=');
    const own = equals < 0 ? parameter : parameter.slice(0, equals);
    if (unescaped(own) === name) return equals < 0 ? '' : unescaped(parameter.slice(equals + 1));
  }
  return undefined;
}

/** Returns the path without the parameters `name`. The others stay as they are. */
export function withoutParameter(path: string, name: string): string {
  const start = path.indexOf('?');
  if (start < 0) return path;
  const all = path.slice(start + 1).split('&');
  const kept = all.filter((parameter) => unescaped(parameter.split('=', 1)[0]!) !== name);
  if (kept.length === all.length) return path;
  return path.slice(0, start) + (kept.length === 0 ? '' : `?${kept.join('&')}`);
}

/** Replaces %XX with its byte and keeps invalid escapes. */
function unescaped(text: string): string {
  if (!text.includes('%')) return text;
  return text.replace(/%[0-9a-f]{2}/gi, (found) => String.fromCharCode(Number.parseInt(found.slice(1), 16)));
}
