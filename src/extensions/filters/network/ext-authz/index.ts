// envoy.filters.network.ext_authz: asks a service over gRPC whether a connection is allowed, when its client sends the first bytes.

import type { ExtAuthzExtAuthz as FilterConfig } from '../../../../config/generated/api.js';
import {
  byValue,
  checkGrpcService,
  durationMs,
  MetadataRule,
  type NetworkFilterExtension,
  obeyed,
  onlyFalse,
  refused,
  reportMistakes,
} from '../../../sdk.js';
import { ConnectionAuthorization, ConnectionAuthzStats } from './connection-authorization.js';
import { NetworkExtAuthzFilter } from './network-ext-authz-filter.js';

const FILTER = 'envoy.extensions.filters.network.ext_authz.v3.ExtAuthz';

export const networkExtAuthz: NetworkFilterExtension<FilterConfig> = {
  category: 'envoy.filters.network',
  name: 'envoy.filters.network.ext_authz',
  typeUrls: [`type.googleapis.com/${FILTER}`],
  implemented: {
    'envoy.extensions.filters.network.ext_authz.v3.ExtAuthz': {
      ...obeyed(
        'stat_prefix',
        'grpc_service',
        'failure_mode_allow',
        'include_peer_certificate',
        'filter_enabled_metadata',
        'bootstrap_metadata_labels_key',
        'include_tls_session',
        'metadata_context_namespaces',
        'shadow_mode',
      ),
      transport_api_version: byValue({ AUTO: true, V2: false, V3: true }),
      send_tls_alert_on_denial: onlyFalse('connections are closed without an alert: leave it out'),
      typed_metadata_context_namespaces: refused('filters set no typed metadata: use metadata_context_namespaces'),
    },
  },
  validate({ filter_enabled_metadata: metadata, grpc_service: service }, report) {
    if (service === undefined) report('', 'grpc_service must be set');
    else {
      checkGrpcService(service, 'grpc_service', report);
      if (service.google_grpc !== undefined)
        report(
          'grpc_service.google_grpc',
          'workers call the hosts of clusters: define one with http2_protocol_options for target_uri, and name it in envoy_grpc',
        );
      if (service.timeout !== undefined && durationMs(service.timeout) === 0)
        report('grpc_service.timeout', 'must be above 0: without a timeout a connection could wait forever');
    }
    if (metadata !== undefined) reportMistakes(report, '', () => new MetadataRule(metadata, 'filter_enabled_metadata'));
  },
  clusters: (config) => [['grpc_service.envoy_grpc.cluster_name', config.grpc_service?.envoy_grpc?.cluster_name]],
  scopes: (config) => [{ prefix: prefixOf(config), layout: ConnectionAuthzStats }],
  createOnWorker(config, _chain, context) {
    const authorization = new ConnectionAuthorization(
      config,
      context,
      context.scope(prefixOf(config), ConnectionAuthzStats),
    );
    return {
      create: (client) => new NetworkExtAuthzFilter(client, authorization),
      close: () => authorization.channel.close(),
    };
  },
};

function prefixOf({ stat_prefix: prefix }: FilterConfig): string {
  return `ext_authz.${prefix}.`;
}
