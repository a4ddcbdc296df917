// How a cluster's hosts are spoken to in HTTP: one of its typed_extension_protocol_options.

import type { Cluster, Http1ProtocolOptions, Http2ProtocolOptions, UpstreamProtocolOptions } from '../generated/api.js';
import { unpack } from '../schema/any.js';

/** The key, which says whose options they are, and the name of the message. */
export const HTTP_OPTIONS = 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions';

export function httpOptions(cluster: Cluster): UpstreamProtocolOptions | undefined {
  return unpack(cluster.typed_extension_protocol_options?.[HTTP_OPTIONS], HTTP_OPTIONS);
}

/**
 * Of a cluster that does not speak HTTP/2, where they stand in its httpOptions(), and what they say. Hosts that are spoken to as clients
 * speak are spoken to in HTTP/1.1, which is all that clients speak.
 */
export function http1Options(cluster: Cluster): { readonly holder: string; readonly options: Http1ProtocolOptions } {
  const { explicit_http_config: explicit, use_downstream_protocol_config: same } = httpOptions(cluster) ?? {};
  const holder = same === undefined ? 'explicit_http_config' : 'use_downstream_protocol_config';
  return { holder, options: (explicit ?? same)?.http_protocol_options ?? {} };
}

/** Whether the cluster's hosts are spoken to in HTTP/2. */
export function speaksHttp2(cluster: Cluster): boolean {
  return http2Options(cluster) !== undefined;
}

/** Undefined: the cluster's hosts are spoken to in HTTP/1.1. */
export function http2Options(cluster: Cluster): Http2ProtocolOptions | undefined {
  return httpOptions(cluster)?.explicit_http_config?.http2_protocol_options ?? cluster.http2_protocol_options;
}
