// envoy.filters.udp_listener.udp_proxy: forwards datagrams between clients and hosts.

import type { UdpProxyConfig } from '../../../../config/generated/api.js';
import {
  accepted,
  accessLogScopes,
  obeyed,
  type Report,
  refused,
  reportLogFilters,
  reportMistakes,
  UdpClusterStats,
  type UdpListenerFilterExtension,
  UdpProxyStats,
} from '../../../sdk.js';
import { compileMatcher } from '../../common/matching/matcher.js';
import { checkInputs } from './inputs.js';
import { routeActions, udpProxySettings } from './settings.js';
import { UdpProxy, udpClusterPrefix } from './udp-proxy.js';

const UDP_PROXY = 'envoy.extensions.filters.udp.udp_proxy.v3.UdpProxyConfig';

export const udpProxy: UdpListenerFilterExtension<UdpProxyConfig> = {
  category: 'envoy.filters.udp_listener',
  name: 'envoy.filters.udp_listener.udp_proxy',
  typeUrls: [`type.googleapis.com/${UDP_PROXY}`],
  implemented: {
    [UDP_PROXY]: {
      ...obeyed(
        'stat_prefix',
        'cluster',
        'matcher',
        'idle_timeout',
        'use_original_src_ip',
        'hash_policies',
        'upstream_socket_config',
        'use_per_packet_load_balancing',
        'access_log',
        'proxy_access_log',
        'access_log_options',
      ),
      session_filters: refused('datagrams go to the hosts as they are: leave it out'),
      tunneling_config: refused('datagrams are not tunneled over HTTP: leave it out'),
    },
    [`${UDP_PROXY}.HashPolicy`]: obeyed('source_ip', 'key'),
    [`${UDP_PROXY}.UdpAccessLogOptions`]: {
      access_log_flush_interval: true,
      flush_access_log_on_tunnel_connected: accepted('it is about tunnels'),
    },
  },
  validate(config, report) {
    reportLogFilters(config.access_log, 'access_log', report);
    reportLogFilters(config.proxy_access_log, 'proxy_access_log', report);
    checkMatcher(config, report);
  },
  scopes: (config, _listener, extensions) => [
    { prefix: `udp.${config.stat_prefix}.`, layout: UdpProxyStats },
    ...[...new Set(clusterNames(config))].map((name) => ({ prefix: udpClusterPrefix(name), layout: UdpClusterStats })),
    ...accessLogScopes([...(config.access_log ?? []), ...(config.proxy_access_log ?? [])], extensions),
  ],
  createOnWorker(config, _listener, context) {
    const stats = context.scope(`udp.${config.stat_prefix}.`, UdpProxyStats);
    return new UdpProxy(udpProxySettings(config, context), context, stats);
  },
};

function checkMatcher({ matcher }: UdpProxyConfig, report: Report): void {
  if (matcher === undefined) return;
  checkInputs(matcher, 'matcher', report);
  reportMistakes(report, '', () =>
    compileMatcher(
      matcher,
      'matcher',
      routeActions((name) => name),
    ),
  );
}

/** Returns the clusters of all routes. */
function clusterNames({ cluster, matcher }: UdpProxyConfig): string[] {
  if (matcher === undefined) return [cluster ?? ''];
  const names: string[] = [];
  compileMatcher(
    matcher,
    'matcher',
    routeActions((name) => names.push(name)),
  );
  return names;
}
