// The transport sockets of one version of a cluster, on the primary.

import { upstreamHttpOptions } from '../../../config/fields/http-options.js';
import { upstreamTransport } from '../../../config/fields/upstream-transport.js';
import type {
  Cluster,
  Http11ProxyUpstreamTransport,
  InternalUpstreamTransport,
  ProxyProtocolConfig,
  UpstreamTlsContext,
} from '../../../config/generated/api.js';
import { addressText, ipAddress } from '../../../io/addresses/address.js';
import { ProxyProtocolStats } from '../../../stats/layouts/cluster.js';
import type { TlsContexts } from '../../../tls/tls-contexts.js';
import type {
  ClusterTls,
  ClusterTransport,
  PassthroughSpec,
  ProxyHeaderSpec,
  RequestNames,
} from '../../../upstream/cluster-config.js';
import { encodeTlv } from '../../../upstream/connections/proxy-header.js';
import type { InitManager } from '../../init/init-manager.js';
import type { ClusterResources } from './cluster-resources.js';
import type { VersionResources } from './version-resources.js';

/** What the transport sockets of a version need of its resources. */
export type TransportResources = Pick<VersionResources, 'addScope' | 'statsOf' | 'whenUnused'> & {
  readonly shared: Pick<ClusterResources, 'internalScope' | 'tlsScopes'>;
};

/**
 * Makes the contexts of a version, which `resources` releases, for ClusterSpec.transports. `init` waits for their secrets. Throws a
 * BatonError.
 */
export function clusterTransports(
  config: Cluster,
  resources: TransportResources,
  contexts: TlsContexts,
  init: InitManager,
): (ClusterTransport | null)[] {
  const sockets = [
    config.transport_socket,
    ...(config.transport_socket_matches ?? []).map((match) => match.transport_socket),
  ];
  const transports = sockets.map(upstreamTransport);
  if (transports.some(({ proxyProtocol }) => proxyProtocol !== undefined))
    resources.addScope('upstream.proxyprotocol.', ProxyProtocolStats);
  return transports.map(({ connectProxy, internal, proxyProtocol, tls }) => {
    if ((connectProxy ?? internal ?? proxyProtocol ?? tls) === undefined) return null;
    return {
      passthrough: internal && passthroughSpec(internal, resources),
      tls: tls && clusterTls(config, tls, resources, contexts, init),
      proxyHeader: proxyProtocol && proxyHeaderSpec(proxyProtocol.config),
      proxies: connectProxy && { defaultAddress: defaultProxy(connectProxy) },
    };
  });
}

function clusterTls(
  config: Cluster,
  context: UpstreamTlsContext,
  resources: TransportResources,
  contexts: TlsContexts,
  init: InitManager,
): ClusterTls {
  const { factory, ssl } = resources.shared.tlsScopes();
  const { number, release } = contexts.client(context, {
    statPrefix: ssl.prefix,
    factoryStats: resources.statsOf(factory),
    waitFor: (name, isLocal) => init.add(name, isLocal),
  });
  resources.whenUnused(release);
  const {
    auto_host_sni: usesHostname = false,
    auto_sni_san_validation: verifiesServerName = false,
    sni: serverName = '',
  } = context;
  return {
    context: number,
    serverName,
    usesHostname,
    verifiesServerName,
    requestNames: requestNames(config),
    keyLog: context.common_tls_context?.key_log,
    scope: ssl,
    factoryScope: factory,
  };
}

function passthroughSpec(
  { passthrough_metadata: sources = [] }: InternalUpstreamTransport,
  resources: TransportResources,
): PassthroughSpec {
  return {
    fromHost: sources.flatMap(({ kind, name = '' }) => (kind?.host === undefined ? [] : [name])),
    fromCluster: sources.flatMap(({ kind, name = '' }) => (kind?.cluster === undefined ? [] : [name])),
    scope: resources.shared.internalScope(),
  };
}

function defaultProxy({ default_proxy_address: address }: Http11ProxyUpstreamTransport): string {
  const { address: ip = '', port_value: port = 0 } = address?.socket_address ?? {};
  const parsed = ipAddress(ip, port);
  return parsed === undefined ? '' : addressText(parsed);
}

function proxyHeaderSpec({ added_tlvs: added = [], version = 'V1' }: ProxyProtocolConfig = {}): ProxyHeaderSpec {
  const tlvs = added.map(({ type = 0, value = '' }) => encodeTlv(type, Buffer.from(value, 'base64')));
  return { version, tlvs: Buffer.concat(tlvs).toString('base64') };
}

function requestNames(config: Cluster): RequestNames | undefined {
  const {
    auto_san_validation: areVerified = false,
    auto_sni: areSent = false,
    ...options
  } = upstreamHttpOptions(config) ?? {};
  if (!areSent && !areVerified) return undefined;
  return { areSent, areVerified, header: options.override_auto_sni_header || ':authority' };
}
