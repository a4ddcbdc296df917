// The transport socket of connections to hosts: some wrap another one.

import type {
  Http11ProxyUpstreamTransport,
  InternalUpstreamTransport,
  ProxyProtocolUpstreamTransport,
  TransportSocket,
  UpstreamTlsContext,
} from '../generated/api.js';
import { unpack } from '../schema/any.js';

export const UPSTREAM_TLS = 'envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext';
export const PROXY_TRANSPORT = 'envoy.extensions.transport_sockets.proxy_protocol.v3.ProxyProtocolUpstreamTransport';

export const INTERNAL_TRANSPORT = 'envoy.extensions.transport_sockets.internal_upstream.v3.InternalUpstreamTransport';
export const CONNECT_TRANSPORT = 'envoy.extensions.transport_sockets.http_11_proxy.v3.Http11ProxyUpstreamTransport';

export interface UpstreamTransport {
  readonly internal: InternalUpstreamTransport | undefined;
  readonly connectProxy: Http11ProxyUpstreamTransport | undefined;
  readonly tls: UpstreamTlsContext | undefined;
  readonly proxyProtocol: ProxyProtocolUpstreamTransport | undefined;
}

/** Returns what a transport socket is made of; nothing for plain connections. */
export function upstreamTransport(socket: TransportSocket | undefined): UpstreamTransport {
  const internal: InternalUpstreamTransport | undefined = unpack(socket?.typed_config, INTERNAL_TRANSPORT);
  const outer = internal === undefined ? socket : internal.transport_socket;
  const connectProxy: Http11ProxyUpstreamTransport | undefined = unpack(outer?.typed_config, CONNECT_TRANSPORT);
  const proxyProtocol: ProxyProtocolUpstreamTransport | undefined = unpack(outer?.typed_config, PROXY_TRANSPORT);
  const wrapping = connectProxy ?? proxyProtocol;
  const inner = wrapping === undefined ? outer : wrapping.transport_socket;
  return { internal, tls: unpack(inner?.typed_config, UPSTREAM_TLS), connectProxy, proxyProtocol };
}
