// Configurations of internal listeners, for the tests of this folder.

import { bootstrap, type Config, staticCluster } from '../../harness/index.js';

const EXTENSIONS = 'type.googleapis.com/envoy.extensions';

/** Returns a bootstrap with the extension for internal listeners. */
export function internalBootstrap(
  listeners: Config[],
  clusters: Config[],
  extra: Config = {},
  extension?: Config,
): Config {
  const typed_config = { '@type': `${EXTENSIONS}.bootstrap.internal_listener.v3.InternalListener`, ...extension };
  const bootstrap_extensions = [{ name: 'envoy.bootstrap.internal_listener', typed_config }];
  return bootstrap({ listeners, clusters, extra: { bootstrap_extensions, ...extra } });
}

/** Returns a listener without its socket. */
export function internal({ address: _, stat_prefix: __, ...listener }: Config, more: Config = {}): Config {
  return { ...listener, internal_listener: {}, ...more };
}

/** Returns a cluster whose host is an internal listener. */
export function internalCluster(name: string, listener: string, endpointId?: string, more: Config = {}): Config {
  const endpoint = endpointId === undefined ? {} : { endpoint_id: endpointId };
  return staticCluster(name, { envoy_internal_address: { server_listener_name: listener, ...endpoint } }, more);
}

/** Returns the transport socket that passes metadata and filter state, around another one. */
export function internalUpstream(passthrough: Config[] = [], inner: Config = RAW_BUFFER): Config {
  return {
    name: 'envoy.transport_sockets.internal_upstream',
    typed_config: {
      '@type': `${EXTENSIONS}.transport_sockets.internal_upstream.v3.InternalUpstreamTransport`,
      passthrough_metadata: passthrough,
      transport_socket: inner,
    },
  };
}

const RAW_BUFFER: Config = {
  name: 'envoy.transport_sockets.raw_buffer',
  typed_config: { '@type': `${EXTENSIONS}.transport_sockets.raw_buffer.v3.RawBuffer` },
};

/** The listener filter that restores the destination which the opener of a connection has passed. */
export const ORIGINAL_DST: Config = {
  name: 'envoy.filters.listener.original_dst',
  typed_config: { '@type': `${EXTENSIONS}.filters.listener.original_dst.v3.OriginalDst` },
};
