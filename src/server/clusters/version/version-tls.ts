// The TLS of one version of a cluster, on the primary.

import { http2Options } from '../../../config/fields/http-options.js';
import type { Cluster, UpstreamTlsContext } from '../../../config/generated/api.js';
import { unpack } from '../../../config/schema/any.js';
import type { TlsContexts } from '../../../tls/tls-contexts.js';
import type { ClusterTls } from '../../../upstream/cluster-config.js';
import type { VersionResources } from './version-resources.js';

const MESSAGE = 'envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext';

export interface VersionTls {
  readonly snapshot: ClusterTls;
  /** Called when no thread connects with it any more. */
  release(): void;
}

/** Returns undefined for plain connections. Throws a BatonError for a context that cannot be made. */
export function versionTls(
  config: Cluster,
  { shared }: VersionResources,
  contexts: TlsContexts,
): VersionTls | undefined {
  const context: UpstreamTlsContext | undefined = unpack(config.transport_socket?.typed_config, MESSAGE);
  if (context === undefined) return undefined;
  // As in Envoy: connections that speak HTTP/2 alone say so.
  const { number, release } = contexts.client(context, http2Options(config) === undefined ? [] : ['h2']);
  const { auto_host_sni: usesHostname = false, sni: serverName = '' } = context;
  return { snapshot: { context: number, serverName, usesHostname, scope: shared.tlsScope() }, release };
}
