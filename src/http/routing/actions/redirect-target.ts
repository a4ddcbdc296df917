// Parses the Location header of a redirect that a host has sent.

export interface RedirectTarget {
  readonly isHttps: boolean;
  /** With the port, if there is one. */
  readonly authority: string;
  /** With the query, without the fragment. */
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
/** A name, an IPv4 address or an IPv6 address in brackets, with an optional port. */
const AUTHORITY = /^(?:[\w.~%!$&'()*+,;=-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i;

/** Returns the index of the first of `delimiters` at or after `from`; the length of the text if there is none. */
function endOf(text: string, from: number, delimiters: string): number {
  for (let i = from; i < text.length; i++) if (delimiters.includes(text[i]!)) return i;
  return text.length;
}
