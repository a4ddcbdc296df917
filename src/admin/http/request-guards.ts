// Requests that are refused whatever they ask for: those that a web page of another site makes a browser send.

import type { IncomingHttpHeaders } from 'node:http';
import { isIPv6 } from 'node:net';

interface RequestHead {
  readonly httpVersionMajor: number;
  readonly httpVersionMinor: number;
  /** Names and values by turns. */
  readonly rawHeaders: readonly string[];
}

/** A fault of the Host header. */
export interface HostFault {
  /** For the access log. */
  readonly details: string;
  /** For the client. */
  readonly text: string;
}

/** Whether a host may be asked for; undefined when nobody has asked for one. */
export type HostRule = (host: string | undefined) => boolean;

/**
 * The rule of --admin-allowed-hosts: names that a Host header may have, with any port, or `name:port`. It protects from DNS
 * rebinding, by which a page gives its own name to this server's address. An empty list allows every host. Headers have IPv6
 * addresses in brackets, the list may have them without.
 */
export function allowedHosts(hosts: readonly string[]): HostRule {
  if (hosts.length === 0) return () => true;
  const allowed = new Set(hosts.map((host) => (isIPv6(host) ? `[${host}]` : host).toLowerCase()));
  return (host) => {
    const name = host?.toLowerCase() ?? '';
    return allowed.has(name) || allowed.has(name.replace(/:[0-9]*$/, ''));
  };
}

/** What is wrong with the Host header (RFC 9112 §3.2): HTTP/1.1 has one, and nobody knows which of several counts. */
export function hostFault({ httpVersionMajor, httpVersionMinor, rawHeaders }: RequestHead): HostFault | undefined {
  const count = rawHeaders.filter((name, index) => index % 2 === 0 && name.toLowerCase() === 'host').length;
  if (count > 1) return { details: 'several_host_headers', text: 'A request names one host.\n' };
  if (count === 1 || httpVersionMajor !== 1 || httpVersionMinor !== 1) return undefined;
  return { details: 'missing_host_header', text: 'A request of HTTP/1.1 names its host.\n' };
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
