// Parses the URI of a service that Baton itself calls into Host field and path.

/** The authority follows isAuthority(): a name, an IPv4 address or an IP literal in brackets, with an optional port. */
const URI = /^http:\/\/((?:[\w.~!$&'()*+,;=%-]+|\[[\da-f:.]+\])(?::\d+)?)(\/[^?#]*)?(\?[^#]*)?$/i;

export interface HttpTarget {
  /** As in the URI: `collector:4318`. */
  readonly host: string;
  /** With the query; "/" when the URI has none. */
  readonly path: string;
}

/** Splits `http://host[:port][/path][?query]`. Returns an error text for any other URI. */
export function httpTarget(uri: string): HttpTarget | string {
  if (/^https:/i.test(uri)) return 'calls by TLS are not implemented: give an http:// URI';
  const [, host, path = '/', query = ''] = URI.exec(uri) ?? [];
  if (host === undefined || !/^[\x21-\x7e]+$/.test(uri)) return `'${uri}' is no URI like http://host:port/path`;
  return { host, path: path + query };
}
