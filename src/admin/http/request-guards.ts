// Requests that are refused whatever they ask for: those that a web page of another site makes a browser send.

import type { IncomingHttpHeaders } from 'node:http';

interface RequestHead {
  readonly httpVersionMajor: number;
  readonly httpVersionMinor: number;
  readonly headers: IncomingHttpHeaders;
}

/** Whether a host may be asked for; undefined when nobody has asked for one. */
export type HostRule = (host: string | undefined) => boolean;

/**
 * The rule of --admin-allowed-hosts: names that a Host header may have, with any port, or `name:port`. It protects from DNS
 * rebinding, by which a page gives its own name to this server's address. An empty list allows every host.
 */
export function allowedHosts(hosts: readonly string[]): HostRule {
  if (hosts.length === 0) return () => true;
  const allowed = new Set(hosts.map((host) => host.toLowerCase()));
  return (host) => {
    const name = host?.toLowerCase() ?? '';
    return allowed.has(name) || allowed.has(name.replace(/:[0-9]*$/, ''));
  };
}

/** Whether a request of HTTP/1.1 has no Host header (RFC 9112 §3.2). */
export function lacksHost({ httpVersionMajor, httpVersionMinor, headers }: RequestHead): boolean {
  return httpVersionMajor === 1 && httpVersionMinor === 1 && headers.host === undefined;
}

/**
 * The site that a browser sends a request for, when it is not the one that the request goes to; undefined for requests of this
 * server's own pages, and for clients that are no browsers. Browsers tell it in Sec-Fetch-Site or, with every POST, in Origin.
 */
export function foreignSite(headers: IncomingHttpHeaders): string | undefined {
  const site = headers['sec-fetch-site'];
  const origin = headers.origin;
  if (typeof site === 'string') {
    if (site === 'same-origin' || site === 'none') return undefined;
    return origin ?? site;
  }
  return origin === undefined || isOf(headers.host, origin) ? undefined : origin;
}

/** Whether `http://name:port` is the origin of a server that is called `name:port`. `null` is nobody's. */
function isOf(host: string | undefined, origin: string): boolean {
  if (host === undefined || !URL.canParse(origin)) return false;
  const { host: originHost, protocol } = new URL(origin);
  const asked = `${protocol}//${host}`;
  return originHost !== '' && URL.canParse(asked) && new URL(asked).host === originHost;
}
