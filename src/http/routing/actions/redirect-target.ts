// The target of a host's redirect, from its Location field.

export interface RedirectTarget {
  readonly isHttps: boolean;
  /** With its port, if it has one. */
  readonly authority: string;
  /** With its query, without fragment. */
  readonly path: string;
}

/** Returns undefined unless `location` is an absolute URL with an authority. One character per byte, in and out. */
export function redirectTarget(location: string): RedirectTarget | undefined {
  const colon = location.indexOf('://');
  if (colon <= 0 || !SCHEME.test(location.slice(0, colon))) return undefined;
  const start = colon + 3;
  const end = endOf(location, start, '/?#');
  const authority = location.slice(location.lastIndexOf('@', end - 1) + 1 || start, end);
  if (!AUTHORITY.test(authority)) return undefined;
  const path = location.slice(end, endOf(location, end, '#'));
  for (let i = 0; i < path.length; i++) if (path.charCodeAt(i) <= 32 || path.charCodeAt(i) === 127) return undefined;
  const isHttps = location.slice(0, colon).toLowerCase() === 'https';
  return { isHttps, authority, path: path.startsWith('/') ? path : `/${path}` };
}

const SCHEME = /^[a-z][a-z0-9+.-]*$/i;
/** A name, an IPv4 address or an IPv6 address in brackets; and perhaps a port. */
const AUTHORITY = /^(?:[\w.~%!$&'()*+,;=-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i;

/** Returns where the first of `delimiters` stands at or after `from`, or the length of the text. */
function endOf(text: string, from: number, delimiters: string): number {
  for (let i = from; i < text.length; i++) if (delimiters.includes(text[i]!)) return i;
  return text.length;
}
