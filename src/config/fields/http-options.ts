// The HTTP options of a cluster, in its typed_extension_protocol_options.

import type { Cluster, Http1ProtocolOptions, Http2ProtocolOptions, UpstreamProtocolOptions } from '../generated/api.js';
import { unpack } from '../schema/any.js';

/** The key of the options, which is also the name of the message. */
export const HTTP_OPTIONS = 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions';

export function httpOptions(cluster: Cluster): UpstreamProtocolOptions | undefined {
  return unpack(cluster.typed_extension_protocol_options?.[HTTP_OPTIONS], HTTP_OPTIONS);
}

/**
 * Returns the HTTP/1 options of a cluster without HTTP/2, and the field of httpOptions() that contains them. With
 * use_downstream_protocol_config, hosts use HTTP/1.1 too, since clients use nothing else.
 */
export function http1Options(cluster: Cluster): { readonly holder: string; readonly options: Http1ProtocolOptions } {
  const { explicit_http_config: explicit, use_downstream_protocol_config: same } = httpOptions(cluster) ?? {};
  const holder = same === undefined ? 'explicit_http_config' : 'use_downstream_protocol_config';
  return { holder, options: (explicit ?? same)?.http_protocol_options ?? {} };
}

/** Returns whether the cluster's hosts use HTTP/2. */
export function speaksHttp2(cluster: Cluster): boolean {
  return http2Options(cluster) !== undefined;
}

/** Returns undefined if the cluster's hosts use HTTP/1.1. */
export function http2Options(cluster: Cluster): Http2ProtocolOptions | undefined {
  return httpOptions(cluster)?.explicit_http_config?.http2_protocol_options ?? cluster.http2_protocol_options;
}
