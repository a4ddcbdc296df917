// The URI of a service that Baton calls itself: which Host field and which path a request to it has.

/** An authority as isAuthority() takes it: a name, an IPv4 address or an IP literal in brackets, and perhaps a port. */
const URI = /^http:\/\/((?:[\w.~!$&'()*+,;=%-]+|\[[\da-f:.]+\])(?::\d+)?)(\/[^?#]*)?(\?[^#]*)?$/i;

export interface HttpTarget {
  /** As in the URI: `collector:4318`. */
  readonly host: string;
  /** With the query; "/" when the URI has none. */
  readonly path: string;
}

/** Takes `http://host[:port][/path][?query]` apart; a text that tells what is wrong with any other. */
export function httpTarget(uri: string): HttpTarget | string {
  if (/^https:/i.test(uri)) return 'calls by TLS are not implemented: give an http:// URI';
  const [, host, path = '/', query = ''] = URI.exec(uri) ?? [];
  if (host === undefined || !/^[\x21-\x7e]+$/.test(uri)) return `'${uri}' is no URI like http://host:port/path`;
  return { host, path: path + query };
}
