// envoy.filters.network.tcp_proxy: forwards bytes between a client and a host of a cluster.

import { durationMs } from '../../../../common/time/duration.js';
import type { TcpProxy as TcpProxyConfig } from '../../../../config/generated/api.js';
import { MetadataMatch } from '../../../../http/routing/actions/metadata-match.js';
import { TcpOnDemandStats, TcpStats } from '../../../../stats/layouts/tcp.js';
import { onDemandSource } from '../../../../upstream/missing-clusters.js';
import type { TerminalNetworkFilterExtension, WorkerContext } from '../../../factories.js';
import { reportLogFilters } from '../../../log-filters.js';
import { accessLogScopes } from '../../../registry.js';
import { reportMistakes } from '../../../report-mistakes.js';
import { connectBackoff } from './connect-backoff.js';
import type { ClusterChoice, OnDemand } from './proxy-context.js';
import { createProxyLogs } from './proxy-logs.js';
import { TcpProxy } from './tcp-proxy.js';
import { TunnelRequest } from './tunnel-request.js';

const DEFAULT_IDLE_MS = 60 * 60_000;
const DEFAULT_ON_DEMAND_MS = 60_000;

export const tcpProxy: TerminalNetworkFilterExtension<TcpProxyConfig> = {
  category: 'envoy.filters.network',
  name: 'envoy.filters.network.tcp_proxy',
  typeUrls: ['type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy'],
  isTerminal: true,
  validate(config, report) {
    reportLogFilters(config.access_log, 'access_log', report);
    const { access_log_options: options, backoff_options: backoff, tunneling_config: tunneling } = config;
    for (const field of ['flush_access_log_on_connected', 'access_log_flush_interval'] as const)
      if (options !== undefined && config[field]) report(field, 'use access_log_options instead, which is set too');
    if (backoff?.max_interval !== undefined && durationMs(backoff.max_interval) < durationMs(backoff.base_interval!))
      report('backoff_options.max_interval', 'it is less than base_interval');
    if (tunneling !== undefined) reportMistakes(report, 'tunneling_config', () => new TunnelRequest(tunneling));
  },
  scopes: (config, _listener, extensions) => [
    { prefix: statPrefix(config), layout: TcpStats },
    ...(config.on_demand === undefined ? [] : [{ prefix: statPrefix(config), layout: TcpOnDemandStats }]),
    ...accessLogScopes(config.access_log, extensions),
  ],
  createOnWorker(config, { names }, context) {
    const options = {
      chain: names,
      pickCluster: clusterPicker(config, context),
      match: MetadataMatch.of(config.metadata_match),
      findCluster: (name: string) =>
        clusterNames(config).has(name) ? context.clusters.find(name)?.current : undefined,
      selectedCluster: (name: string) => context.clusters.find(name)?.current,
      onDemand: onDemandOf(config, context),
      idleMs: durationMs(config.idle_timeout, DEFAULT_IDLE_MS),
      maxConnectionMs:
        config.max_downstream_connection_duration === undefined
          ? 0
          : durationMs(config.max_downstream_connection_duration),
      hashesSourceIp: config.hash_policy?.some((policy) => policy.source_ip !== undefined) ?? false,
      maxConnectAttempts: config.max_connect_attempts ?? 1,
      checksDrain: config.check_drain_close ?? false,
      backoff: connectBackoff(config.backoff_options),
      tunnel: config.tunneling_config && new TunnelRequest(config.tunneling_config),
      logs: createProxyLogs(config, context),
    };
    return new TcpProxy(context, options, context.scope(statPrefix(config), TcpStats));
  },
};

function statPrefix(config: TcpProxyConfig): string {
  return `tcp.${config.stat_prefix}.`;
}

/** Returns a function that picks the cluster: the only one, or one of several by weight. */
function clusterPicker(config: TcpProxyConfig, context: WorkerContext): () => ClusterChoice {
  const { clusters, random } = context;
  const common = MetadataMatch.of(config.metadata_match);
  const choices = (config.weighted_clusters?.clusters ?? []).map((choice) => ({
    reference: clusters.reference(choice.name!),
    weight: choice.weight!,
    match: MetadataMatch.of(choice.metadata_match, common),
  }));
  if (choices.length === 0) {
    const only = { reference: clusters.reference(config.cluster ?? ''), match: common };
    return () => only;
  }
  const total = choices.reduce((sum, choice) => sum + choice.weight, 0);
  return () => {
    let left = random.below(total);
    return choices.find((choice) => (left -= choice.weight) < 0)!;
  };
}

function onDemandOf(config: TcpProxyConfig, { missingClusters, scope }: WorkerContext): OnDemand | undefined {
  const { odcds_config: source, timeout } = config.on_demand ?? {};
  const from = onDemandSource(source, timeout, DEFAULT_ON_DEMAND_MS);
  return from && { from, clusters: missingClusters, stats: scope(statPrefix(config), TcpOnDemandStats) };
}

function clusterNames(config: TcpProxyConfig): ReadonlySet<string> {
  const choices = config.weighted_clusters?.clusters ?? [];
  return new Set(choices.length === 0 ? [config.cluster ?? ''] : choices.map(({ name }) => name!));
}
