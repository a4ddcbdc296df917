// The transport socket of connections to hosts: some wrap another one.

import type { ProxyProtocolUpstreamTransport, TransportSocket, UpstreamTlsContext } from '../generated/api.js';
import { unpack } from '../schema/any.js';

export const UPSTREAM_TLS = 'envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext';
export const PROXY_TRANSPORT = 'envoy.extensions.transport_sockets.proxy_protocol.v3.ProxyProtocolUpstreamTransport';

export interface UpstreamTransport {
  readonly tls: UpstreamTlsContext | undefined;
  readonly proxyProtocol: ProxyProtocolUpstreamTransport | undefined;
}

/** Returns what a transport socket is made of; nothing for plain connections. */
export function upstreamTransport(socket: TransportSocket | undefined): UpstreamTransport {
  const proxyProtocol: ProxyProtocolUpstreamTransport | undefined = unpack(socket?.typed_config, PROXY_TRANSPORT);
  const inner = proxyProtocol === undefined ? socket : proxyProtocol.transport_socket;
  return { tls: unpack(inner?.typed_config, UPSTREAM_TLS), proxyProtocol };
}
