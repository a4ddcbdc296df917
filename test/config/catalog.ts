// Extensions for tests of the loader: names and type URLs without their code.

import { type Extension, ExtensionCatalog } from '../../src/config/catalog/extension.js';
import type { StatsdSink } from '../../src/config/generated/api.js';
import { messageNameOf } from '../../src/config/schema/message-name.js';
import { leastRequest } from '../../src/extensions/load-balancing-policies/least-request/index.js';
import { maglev } from '../../src/extensions/load-balancing-policies/maglev/index.js';
import { random } from '../../src/extensions/load-balancing-policies/random/index.js';
import { ringHash } from '../../src/extensions/load-balancing-policies/ring-hash/index.js';
import { roundRobin } from '../../src/extensions/load-balancing-policies/round-robin/index.js';

const EXTENSIONS = 'envoy.extensions';

export const TEST_EXTENSIONS: readonly Extension[] = [
  {
    category: 'envoy.filters.network',
    name: 'envoy.filters.network.http_connection_manager',
    typeUrls: [`${EXTENSIONS}.filters.network.http_connection_manager.v3.HttpConnectionManager`],
    isTerminal: true,
  },
  {
    category: 'envoy.filters.network',
    name: 'envoy.filters.network.tcp_proxy',
    typeUrls: [`${EXTENSIONS}.filters.network.tcp_proxy.v3.TcpProxy`],
    isTerminal: true,
  },
  {
    category: 'envoy.filters.http',
    name: 'envoy.filters.http.router',
    typeUrls: [`${EXTENSIONS}.filters.http.router.v3.Router`],
    isTerminal: true,
  },
  {
    category: 'envoy.filters.http',
    name: 'envoy.filters.http.buffer',
    typeUrls: [`${EXTENSIONS}.filters.http.buffer.v3.Buffer`, `${EXTENSIONS}.filters.http.buffer.v3.BufferPerRoute`],
  },
  {
    category: 'envoy.filters.http',
    name: 'envoy.filters.http.header_mutation',
    typeUrls: [
      `${EXTENSIONS}.filters.http.header_mutation.v3.HeaderMutation`,
      `${EXTENSIONS}.filters.http.header_mutation.v3.HeaderMutationPerRoute`,
    ],
  },
  {
    category: 'envoy.access_loggers',
    name: 'envoy.access_loggers.file',
    typeUrls: [`${EXTENSIONS}.access_loggers.file.v3.FileAccessLog`],
    validate(config, report) {
      const { path } = config as { readonly path?: string };
      if (path?.endsWith('/')) report('path', 'a file is needed, not a directory');
    },
  },
  {
    category: 'envoy.access_loggers',
    name: 'envoy.access_loggers.stdout',
    typeUrls: [`${EXTENSIONS}.access_loggers.stream.v3.StdoutAccessLog`],
  },
  {
    category: 'envoy.access_loggers',
    name: 'envoy.access_loggers.stderr',
    typeUrls: [`${EXTENSIONS}.access_loggers.stream.v3.StderrAccessLog`],
  },
  {
    category: 'envoy.stats_sinks',
    name: 'envoy.stat_sinks.statsd',
    typeUrls: ['envoy.config.metrics.v3.StatsdSink'],
    clusters: (config) => [['tcp_cluster_name', (config as StatsdSink).tcp_cluster_name]],
  },
  ...[
    ['hystrix', 'envoy.config.metrics.v3.HystrixSink'],
    ['metrics_service', 'envoy.config.metrics.v3.MetricsServiceConfig'],
    ['open_telemetry', `${EXTENSIONS}.stat_sinks.open_telemetry.v3.SinkConfig`],
    ['dog_statsd', 'envoy.config.metrics.v3.DogStatsdSink'],
    ['graphite_statsd', `${EXTENSIONS}.stat_sinks.graphite_statsd.v3.GraphiteStatsdSink`],
  ].map(([name, message]) => ({
    category: 'envoy.stats_sinks',
    name: `envoy.stat_sinks.${name}`,
    typeUrls: [message!],
  })),
  ...['downstream', 'upstream'].map((side) => ({
    category: `envoy.transport_sockets.${side}`,
    name: 'envoy.transport_sockets.raw_buffer',
    typeUrls: [`${EXTENSIONS}.transport_sockets.raw_buffer.v3.RawBuffer`],
  })),
  {
    category: 'envoy.resource_monitors',
    name: 'envoy.resource_monitors.global_downstream_max_connections',
    typeUrls: [`${EXTENSIONS}.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig`],
  },
  ...[leastRequest, maglev, random, ringHash, roundRobin].map((policy) => ({
    ...policy,
    typeUrls: policy.typeUrls.map(messageNameOf),
  })),
  {
    category: 'envoy.upstream_options',
    name: 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
    typeUrls: [`${EXTENSIONS}.upstreams.http.v3.HttpProtocolOptions`],
  },
];

export function testCatalog(disabled: readonly string[] = []): ExtensionCatalog {
  return new ExtensionCatalog(TEST_EXTENSIONS, disabled);
}
