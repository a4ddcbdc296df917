// The HTTP options of a cluster, in its typed_extension_protocol_options.

import type {
  Cluster,
  Http1ProtocolOptions,
  Http2ProtocolOptions,
  HttpProtocolOptions,
  UpstreamHttpProtocolOptions,
  UpstreamProtocolOptions,
} from '../generated/api.js';
import { unpack } from '../schema/any.js';
import { forwardProxyConfig } from './discovery.js';
import { upstreamTransport } from './upstream-transport.js';

/** The key of the options, which is also the name of the message. */
export const HTTP_OPTIONS = 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions';

/** The protocol of a cluster's hosts: HTTP/1.1, HTTP/2, that of the client, or whichever TLS negotiates (ALPN). */
export type HostProtocol = 'HTTP1' | 'HTTP2' | 'AS_CLIENT' | 'NEGOTIATED';

export function httpOptions(cluster: Cluster): UpstreamProtocolOptions | undefined {
  return unpack(cluster.typed_extension_protocol_options?.[HTTP_OPTIONS], HTTP_OPTIONS);
}

/** HttpProtocolOptions replace the fields of the cluster. */
export function hostProtocol(cluster: Cluster): HostProtocol {
  const options = httpOptions(cluster);
  if (options?.auto_config !== undefined) return 'NEGOTIATED';
  if (options?.use_downstream_protocol_config !== undefined) return 'AS_CLIENT';
  if (options === undefined && cluster.protocol_selection === 'USE_DOWNSTREAM_PROTOCOL') return 'AS_CLIENT';
  const { http2_protocol_options: http2 } = options === undefined ? cluster : (options.explicit_http_config ?? {});
  return http2 === undefined ? 'HTTP1' : 'HTTP2';
}

/** The options of each protocol, and the field of httpOptions() that contains them. */
export interface ProtocolOptions {
  readonly holder: string;
  readonly protocols: {
    readonly http_protocol_options?: Http1ProtocolOptions;
    readonly http2_protocol_options?: Http2ProtocolOptions;
  };
}

export function protocolOptions(cluster: Cluster): ProtocolOptions {
  const options = httpOptions(cluster) ?? {};
  const holders = ['explicit_http_config', 'use_downstream_protocol_config', 'auto_config'] as const;
  const holder = holders.find((field) => options[field] !== undefined) ?? 'explicit_http_config';
  return { holder, protocols: options[holder] ?? {} };
}

/** Returns the options that do not depend on the protocol. */
export function commonHttpOptions(cluster: Cluster): HttpProtocolOptions {
  return (httpOptions(cluster) ?? cluster).common_http_protocol_options ?? {};
}

export function http1Options(cluster: Cluster): Http1ProtocolOptions {
  const { http_protocol_options: http1 = {} } =
    httpOptions(cluster) === undefined ? cluster : protocolOptions(cluster).protocols;
  return http1;
}

/** Returns whether the cluster's hosts use HTTP/2, all of them for every request. */
export function speaksHttp2(cluster: Cluster): boolean {
  return hostProtocol(cluster) === 'HTTP2';
}

/** Returns undefined if the cluster's hosts never use HTTP/2. */
export function http2Options(cluster: Cluster): Http2ProtocolOptions | undefined {
  if (hostProtocol(cluster) === 'HTTP1') return undefined;
  const { http2_protocol_options: http2 = {} } =
    httpOptions(cluster) === undefined ? cluster : protocolOptions(cluster).protocols;
  return http2;
}

/** Returns how requests determine the server name of connections. */
export function upstreamHttpOptions(cluster: Cluster): UpstreamHttpProtocolOptions | undefined {
  const options = httpOptions(cluster);
  const own = options === undefined ? cluster.upstream_http_protocol_options : options.upstream_http_protocol_options;
  return own ?? (forwardProxyConfig(cluster) && namesOfRequests(cluster));
}

/** A dynamic forward proxy verifies the host that a request names, unless its TLS context verifies nothing. */
function namesOfRequests({ transport_socket: socket }: Cluster): UpstreamHttpProtocolOptions {
  const {
    combined_validation_context: combined,
    validation_context: own,
    validation_context_sds_secret_config: discovered,
  } = upstreamTransport(socket).tls?.common_tls_context ?? {};
  return { auto_sni: true, auto_san_validation: (own ?? discovered ?? combined) !== undefined };
}
