// Parses the URI of a service that Baton itself calls into Host field and path.

/** The authority follows isAuthority(): a name, an IPv4 address or an IP literal in brackets, with an optional port. */
const URI = /^https?:\/\/((?:[\w.~!$&'()*+,;=%-]+|\[[\da-f:.]+\])(?::\d+)?)(\/[^?#]*)?(\?[^#]*)?$/i;

export interface HttpTarget {
  /** As in the URI: `collector:4318`. */
  readonly host: string;
  /** With the query; "/" when the URI has none. */
  readonly path: string;
}

/**
 * Splits `http://host[:port][/path][?query]`. Returns an error text for any other URI. `https:` means the same: as in Envoy, the
 * cluster decides about TLS.
 */
export function httpTarget(uri: string): HttpTarget | string {
  const [, host, path = '/', query = ''] = URI.exec(uri) ?? [];
  if (host === undefined || !/^[\x21-\x7e]+$/.test(uri)) return `'${uri}' is not a URI like http://host:port/path`;
  return { host, path: path + query };
}
