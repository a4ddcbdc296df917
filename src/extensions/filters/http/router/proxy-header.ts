// The header of the PROXY protocol for a request that ends here: the addresses of its client's connection.

import type { StreamInfo } from '../../../../access-log/stream/stream-info.js';
import type { ProxyProtocolConfig_Version } from '../../../../config/generated/api.js';
import { proxyHeader } from '../../../../upstream/connections/proxy-header.js';

const NONE = new Uint8Array(0);

/** Undefined: no header. */
export function connectHeader(version: ProxyProtocolConfig_Version | undefined, info: StreamInfo): Uint8Array {
  if (version === undefined) return NONE;
  const { downstreamDirectLocalAddress: localText, downstreamDirectRemoteAddress: remoteText } = info;
  return proxyHeader(version, { localText, remoteText });
}
