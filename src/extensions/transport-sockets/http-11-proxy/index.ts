// envoy.transport_sockets.http_11_proxy: connections to hosts pass through HTTP proxies, by CONNECT.
//
// src/upstream/connections sends the request.

import type { Http11ProxyUpstreamTransport } from '../../../config/generated/api.js';
import { ipAddress, type NamedExtension, obeyed } from '../../sdk.js';

const MESSAGE = 'envoy.extensions.transport_sockets.http_11_proxy.v3.Http11ProxyUpstreamTransport';
const INNER = ['/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext', '.raw_buffer.v3.RawBuffer'];

export const http11Proxy: NamedExtension = {
  category: 'envoy.transport_sockets.upstream',
  name: 'envoy.transport_sockets.http_11_proxy',
  typeUrls: [`type.googleapis.com/${MESSAGE}`],
  implemented: { [MESSAGE]: obeyed('transport_socket', 'default_proxy_address') },
  validate(config, report) {
    const { default_proxy_address: address, transport_socket: inner } = config as Http11ProxyUpstreamTransport;
    const type = inner?.typed_config?.['@type'];
    if (type !== undefined && !INNER.some((end) => type.endsWith(end)))
      report('transport_socket', 'a tunnel carries TLS or plain bytes: use tls or raw_buffer here');
    if (address === undefined) return;
    const { address: ip = '', port_value: port = 0 } = address.socket_address ?? {};
    if (ipAddress(ip, port) === undefined)
      report('default_proxy_address', 'it must be an IP address with a port_value');
  },
};
