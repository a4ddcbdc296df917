// DNS resolvers: the addresses of their name servers.

import { isIP } from 'node:net';
import { caresOptions } from '../../fields/discovery.js';
import type { TypedExtensionConfig } from '../../generated/api.js';
import type { Path } from '../../text/path.js';
import type { Problems } from '../../text/problems.js';

/** Checks a typed_dns_resolver_config. */
export function checkResolver(resolver: TypedExtensionConfig | undefined, path: Path, problems: Problems): void {
  for (const [index, server] of (caresOptions(resolver)?.resolvers ?? []).entries()) {
    const at = [...path, 'typed_config', 'resolvers', index];
    if (!server || problems.has(at)) continue;
    const address = server.socket_address?.address ?? '';
    if (isIP(address) !== 0) continue;
    problems.error(at, `a name server needs a socket_address with an IP address, found '${address}'`);
  }
}
