// envoy.transport_sockets.upstream_proxy_protocol: connections to hosts begin with the addresses of the client.
//
// src/upstream/connections sends the header.

import type { ProxyProtocolUpstreamTransport } from '../../../config/generated/api.js';
import { accepted, type NamedExtension } from '../../sdk.js';

const MESSAGE = 'envoy.extensions.transport_sockets.proxy_protocol.v3.ProxyProtocolUpstreamTransport';
const INNER = ['/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext', '.raw_buffer.v3.RawBuffer'];
const UNREAD = 'Envoy does not read it either';
/** Maximum length of the TLVs of a version 2 header, whose length field also counts two addresses and ports. */
const MAX_TLV_BYTES = 65535 - 36;

export const upstreamProxyProtocol: NamedExtension = {
  category: 'envoy.transport_sockets.upstream',
  name: 'envoy.transport_sockets.upstream_proxy_protocol',
  typeUrls: [`type.googleapis.com/${MESSAGE}`],
  implemented: {
    [MESSAGE]: {
      config: true,
      transport_socket: true,
      allow_unspecified_address: accepted(UNREAD),
      tlv_as_pool_key: accepted(UNREAD),
    },
  },
  validate(config, report) {
    const { config: header, transport_socket: inner } = config as ProxyProtocolUpstreamTransport;
    const type = inner?.typed_config?.['@type'];
    if (type !== undefined && !INNER.some((end) => type.endsWith(end)))
      report('transport_socket', 'the header comes before TLS or plain bytes: use tls or raw_buffer here');
    const { added_tlvs: tlvs = [] } = header ?? {};
    let bytes = 0;
    for (const [index, { format_string: format, value = '' }] of tlvs.entries()) {
      const at = `config.added_tlvs[${index}]`;
      if (format === undefined && value === '') report(at, 'it needs a value');
      bytes += 3 + Buffer.byteLength(value, 'base64');
    }
    if (bytes > MAX_TLV_BYTES) report('config.added_tlvs', `together they may have ${MAX_TLV_BYTES} bytes`);
  },
};
