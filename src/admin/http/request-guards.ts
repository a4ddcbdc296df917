// Refuses requests independent of their target: those that a web page of another site causes a browser to send.

import type { IncomingHttpHeaders } from 'node:http';
import { isIPv6 } from 'node:net';

interface RequestHead {
  readonly httpVersionMajor: number;
  readonly httpVersionMinor: number;
  /** Alternating names and values. */
  readonly rawHeaders: readonly string[];
}

/** An invalid Host header. */
export interface HostFault {
  /** For the access log. */
  readonly details: string;
  /** For the client. */
  readonly text: string;
}

/** Returns whether a host may be requested; undefined: the request has no host. */
export type HostRule = (host: string | undefined) => boolean;

/**
 * Returns the rule of --admin-allowed-hosts: names that a Host header may have, with any port, or `name:port`. It protects
 * against DNS rebinding, where a page's own name resolves to this server's address. An empty list allows every host. Headers
 * contain IPv6 addresses in brackets; the list may omit these.
 */
export function allowedHosts(hosts: readonly string[]): HostRule {
  if (hosts.length === 0) return () => true;
  const allowed = new Set(hosts.map((host) => (isIPv6(host) ? `[${host}]` : host).toLowerCase()));
  return (host) => {
    const name = host?.toLowerCase() ?? '';
    return allowed.has(name) || allowed.has(name.replace(/:[0-9]*$/, ''));
  };
}

/**
 * Returns what is wrong with the Host header (RFC 9112 §3.2): HTTP/1.1 requires exactly one, and of several it is undefined
 * which one counts.
 */
export function hostFault({ httpVersionMajor, httpVersionMinor, rawHeaders }: RequestHead): HostFault | undefined {
  const count = rawHeaders.filter((name, index) => index % 2 === 0 && name.toLowerCase() === 'host').length;
  if (count > 1) return { details: 'several_host_headers', text: 'The request has several Host headers.\n' };
  if (count === 1 || httpVersionMajor !== 1 || httpVersionMinor !== 1) return undefined;
  return { details: 'missing_host_header', text: 'The HTTP/1.1 request has no Host header.\n' };
}

/**
 * Returns the site on whose behalf a browser sends a request, if it is not the request's own target; undefined for requests
 * of this server's pages and of clients that are not browsers. Browsers send it in Sec-Fetch-Site or, with every POST, in
 * Origin.
 */
export function foreignSite(headers: IncomingHttpHeaders): string | undefined {
  const site = headers['sec-fetch-site'];
  const origin = headers.origin;
  if (typeof site === 'string') {
    if (site === 'same-origin' || site === 'none') return undefined;
    return origin ?? site;
  }
  return origin === undefined || isOriginOf(headers.host, origin) ? undefined : origin;
}

/** Returns whether `http://name:port` is the origin of a server addressed as `name:port`. `null` never is. */
function isOriginOf(host: string | undefined, origin: string): boolean {
  if (host === undefined || !URL.canParse(origin)) return false;
  const { host: originHost, protocol } = new URL(origin);
  const requested = `${protocol}//${host}`;
  return originHost !== '' && URL.canParse(requested) && new URL(requested).host === originHost;
}
