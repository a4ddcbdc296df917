// The host that a request names, where its connection depends on it (UpstreamHttpProtocolOptions).

import { isIP } from 'node:net';
import type { HeaderBlock } from '../../http/headers/header-block.js';
import { headerReader } from '../../http/routing/matching/header-reader.js';
import type { RequestNames } from '../cluster-config.js';

/** Returns undefined if the connection does not depend on it. */
export type RequestedHost = (headers: HeaderBlock) => string | undefined;

/** Returns a reader of the name or IP address, in lower case, from the configured header or else from the authority; '' if both lack it. */
export function requestedHost({ areVerified, header }: RequestNames): RequestedHost {
  const where = 'upstream_http_protocol_options.override_auto_sni_header';
  const own = headerReader(header, where);
  const authority = headerReader(':authority', where);
  return (headers) => {
    const host = hostOf(own(headers) || authority(headers) || '').toLowerCase();
    // No server name is an IP address (RFC 6066, section 3). A request that names no host fails the verification.
    return areVerified || (host !== '' && isIP(host) === 0) ? host : undefined;
  };
}

function hostOf(authority: string): string {
  const colon = authority.lastIndexOf(':');
  const host = colon >= 0 && !authority.endsWith(']') ? authority.slice(0, colon) : authority;
  return host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host;
}
