// Facts of a client's connection, as modules see them.

import type { ConnectionFacts } from '../../api/index.js';
import type { ConnectionSecurity } from '../sdk.js';

/** A stream or a connection: StreamInfo has this form. */
export interface Connected {
  readonly downstreamRemoteAddress: string;
  readonly downstreamLocalAddress: string;
  readonly downstreamSecurity: ConnectionSecurity | undefined;
}

export function connectionFacts(id: number, connected: Connected): ConnectionFacts {
  const security = connected.downstreamSecurity;
  return {
    id,
    remoteAddress: connected.downstreamRemoteAddress,
    localAddress: connected.downstreamLocalAddress,
    tls: security && {
      serverName: security.serverName,
      version: security.version,
      peerSubject: security.peer?.subject ?? '',
      peerUris: security.peer?.uriSans ?? [],
    },
  };
}
