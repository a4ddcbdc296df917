// The TLS of one version of a cluster, on the primary.

import { http2Options } from '../../../config/fields/http-options.js';
import type { Cluster, UpstreamTlsContext } from '../../../config/generated/api.js';
import { unpack } from '../../../config/schema/any.js';
import type { TlsContexts } from '../../../tls/tls-contexts.js';
import type { ClusterTls } from '../../../upstream/cluster-config.js';
import type { VersionResources } from './version-resources.js';

const MESSAGE = 'envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext';

/** Makes the context of a version, which `resources` releases. Undefined: plain connections. Throws a BatonError. */
export function clusterTls(
  config: Cluster,
  resources: VersionResources,
  contexts: TlsContexts,
): ClusterTls | undefined {
  const context: UpstreamTlsContext | undefined = unpack(config.transport_socket?.typed_config, MESSAGE);
  if (context === undefined) return undefined;
  // As in Envoy: connections that speak HTTP/2 alone say so.
  const { number, release } = contexts.client(context, http2Options(config) === undefined ? [] : ['h2']);
  resources.whenUnused(release);
  const { auto_host_sni: usesHostname = false, sni: serverName = '' } = context;
  return { context: number, serverName, usesHostname, scope: resources.shared.tlsScope() };
}
