// Converts a cluster's health check configuration to the form that the rest of the code uses: every default is filled in, every
// unit is in the name.

import { ProtobufWriter } from '../../common/protobuf-writer.js';
import { durationMs } from '../../common/time/duration.js';
import { hasRequestedHosts } from '../../config/fields/discovery.js';
import type {
  Cluster,
  HealthCheck,
  HealthCheck_CustomHealthCheck,
  HealthCheck_GrpcHealthCheck,
  HealthCheck_HttpHealthCheck,
  HealthCheck_Payload,
  HealthCheck_TcpHealthCheck,
  HealthCheckEventFileSink,
  Int64Range,
} from '../../config/generated/api.js';
import { unpack } from '../../config/schema/any.js';
import { METHOD_NAMES, type Method } from '../../http/headers/header-block.js';
import { compileHeaderMutations, type HeaderMutations } from '../../http/headers/header-mutations.js';
import { compileStringMatcher, type StringRule } from '../../http/routing/matching/string-rule.js';
import { alpnBytes } from '../../tls/algorithms.js';
import { TransportMatches } from '../hosts/transport-matches.js';
import type { CheckIntervals } from './check-interval.js';
import type { Thresholds } from './host-health.js';

export interface HealthCheckSpec {
  readonly timeoutMs: number;
  readonly intervals: CheckIntervals;
  readonly thresholds: Thresholds;
  /** Successive checks share a connection. */
  readonly reusesConnection: boolean;
  /** Failed or passed checks are logged even if they do not change the health. */
  readonly logsFailures: boolean;
  readonly logsSuccesses: boolean;
  /** Files to which events are written. */
  readonly eventPaths: readonly string[];
  /** A host that was never checked is not counted: it is neither healthy nor unhealthy. */
  readonly excludesNewHosts: boolean;
  /** A host removed by discovery goes at once, and not when its checks fail. */
  readonly removesHealthyHosts: boolean;
  /** A host is healthy before its first check: a request waits for it. */
  readonly trustsNewHosts: boolean;
  /** Offered by ALPN in place of what the TLS context offers, in wire form; empty: that. */
  readonly alpn: Uint8Array;
  /** Number of the transport socket of checks (see TransportMatches); undefined: that of the host. */
  readonly transport: number | undefined;
  readonly check: HttpCheckSpec | TcpCheckSpec | GrpcCheckSpec | RedisCheckSpec;
}

export interface HttpCheckSpec {
  readonly kind: 'http';
  readonly usesHttp2: boolean;
  /** The Host field, unless an endpoint has its own. */
  readonly host: string;
  readonly path: string;
  readonly method: Method;
  readonly methodText: string;
  readonly expected: readonly StatusRange[];
  readonly retriable: readonly StatusRange[];
  readonly headers: HeaderMutations | undefined;
  /** Matches the service name in the host's response. */
  readonly service: StringRule | undefined;
  /** The body of the request; undefined: there is none. */
  readonly send: Buffer | undefined;
  /** Expected in the body of the response, in this order; none: the body is ignored. */
  readonly receive: readonly Buffer[];
  /** How many bytes of that body are searched. */
  readonly searchedBytes: number;
}

const DEFAULT_SEARCHED_BYTES = 1024;

export interface GrpcCheckSpec {
  readonly kind: 'grpc';
  /** grpc.health.v1.HealthCheckRequest, with its prefix. */
  readonly message: Uint8Array;
  /** The Host field, unless an endpoint has its own. */
  readonly host: string;
  readonly metadata: HeaderMutations | undefined;
}

export interface TcpCheckSpec {
  readonly kind: 'tcp';
  /** Undefined: nothing is sent. */
  readonly send: Buffer | undefined;
  /** Expected in this order; none: a successful connect is enough. */
  readonly receive: readonly Buffer[];
}

export interface RedisCheckSpec {
  readonly kind: 'redis';
  /** The server is healthy unless it has this key; '': if it answers PING. */
  readonly key: string;
}

/** A half-open range [start, end). */
export interface StatusRange {
  readonly start: number;
  readonly end: number;
}

/** Returns the health check of a checked configuration; undefined: the cluster has none. */
export function healthCheckSpec(cluster: Cluster): HealthCheckSpec | undefined {
  const config = cluster.health_checks?.[0];
  if (config === undefined) return undefined;
  return {
    timeoutMs: Math.max(1, durationMs(config.timeout, 1)),
    intervals: intervals(config),
    thresholds: { unhealthy: config.unhealthy_threshold ?? 1, healthy: config.healthy_threshold ?? 1 },
    reusesConnection: config.reuse_connection ?? true,
    logsFailures: config.always_log_health_check_failures ?? false,
    logsSuccesses: config.always_log_health_check_success ?? false,
    eventPaths: eventPaths(config),
    excludesNewHosts: cluster.common_lb_config?.ignore_new_hosts_until_first_hc ?? false,
    removesHealthyHosts: cluster.ignore_health_on_host_removal || hasRequestedHosts(cluster),
    trustsNewHosts: hasRequestedHosts(cluster),
    alpn: alpnBytes(config.tls_options?.alpn_protocols ?? []),
    transport:
      config.transport_socket_match_criteria &&
      new TransportMatches(cluster.transport_socket_matches).numberOfLabels(config.transport_socket_match_criteria),
    check: checkOf(config, cluster.name ?? ''),
  };
}

/** Returns the paths of the event logs; all configured ones are written. */
function eventPaths({ event_log_path, event_logger = [] }: HealthCheck): string[] {
  const sinks = event_logger.map(({ typed_config }) => (typed_config as HealthCheckEventFileSink).event_log_path!);
  return event_log_path ? [event_log_path, ...sinks] : sinks;
}

function checkOf(config: HealthCheck, clusterName: string): HealthCheckSpec['check'] {
  if (config.tcp_health_check !== undefined) return tcpCheck(config.tcp_health_check);
  if (config.grpc_health_check !== undefined) return grpcCheck(config.grpc_health_check, clusterName);
  if (config.custom_health_check !== undefined) return redisCheck(config.custom_health_check);
  return httpCheck(config.http_health_check ?? {}, clusterName);
}

function grpcCheck(config: HealthCheck_GrpcHealthCheck, clusterName: string): GrpcCheckSpec {
  return {
    kind: 'grpc',
    message: checkRequest(config.service_name ?? ''),
    host: config.authority || clusterName,
    metadata: compileHeaderMutations([
      {
        toRemove: undefined,
        toAdd: config.initial_metadata,
        where: (_, index) => `grpc_health_check.initial_metadata[${index}]`,
      },
    ]),
  };
}

/** Returns an encoded HealthCheckRequest with the prefix of a gRPC message. */
function checkRequest(service: string): Uint8Array {
  const writer = new ProtobufWriter();
  if (service !== '') writer.string(1, service);
  const message = Buffer.alloc(PREFIX_BYTES + writer.length);
  message.writeUInt32BE(writer.length, 1);
  writer.putTo({ put: (bytes, from, to) => message.set(bytes.subarray(from, to), PREFIX_BYTES) });
  return message;
}

const PREFIX_BYTES = 5;

export function isInRanges(status: number, ranges: readonly StatusRange[]): boolean {
  return ranges.some(({ end, start }) => status >= start && status < end);
}

function intervals(config: HealthCheck): CheckIntervals {
  const interval = durationMs(config.interval, 1);
  const noTraffic = durationMs(config.no_traffic_interval, 60_000);
  const unhealthy = durationMs(config.unhealthy_interval, interval);
  return {
    interval,
    noTraffic,
    noTrafficHealthy: durationMs(config.no_traffic_healthy_interval, noTraffic),
    unhealthy,
    unhealthyEdge: durationMs(config.unhealthy_edge_interval, unhealthy),
    healthyEdge: durationMs(config.healthy_edge_interval, interval),
    initialJitter: durationMs(config.initial_jitter, 0),
    jitter: durationMs(config.interval_jitter, 0),
    jitterPercent: config.interval_jitter_percent ?? 0,
  };
}

function httpCheck(config: HealthCheck_HttpHealthCheck, clusterName: string): HttpCheckSpec {
  const { method: name = 'METHOD_UNSPECIFIED', service_name_matcher: matcher } = config;
  const methodText = name === 'METHOD_UNSPECIFIED' ? 'GET' : name;
  return {
    kind: 'http',
    usesHttp2: config.codec_client_type === 'HTTP2',
    host: config.host || clusterName,
    path: config.path ?? '',
    method: METHOD_NAMES.indexOf(methodText) + 1,
    methodText,
    expected: config.expected_statuses?.length ? ranges(config.expected_statuses) : [{ start: 200, end: 201 }],
    retriable: ranges(config.retriable_statuses ?? []),
    headers: compileHeaderMutations([
      {
        toRemove: config.request_headers_to_remove,
        toAdd: config.request_headers_to_add,
        where: (list, index) => `http_health_check.request_headers_${list}[${index}]`,
      },
    ]),
    service: matcher && compileStringMatcher(matcher, 'http_health_check.service_name_matcher'),
    send: config.send && payload(config.send),
    receive: (config.receive ?? []).map(payload),
    searchedBytes: Number(config.response_buffer_size ?? DEFAULT_SEARCHED_BYTES) || Number.POSITIVE_INFINITY,
  };
}

function tcpCheck({ receive = [], send }: HealthCheck_TcpHealthCheck): TcpCheckSpec {
  return { kind: 'tcp', send: send && payload(send), receive: receive.map(payload) };
}

function redisCheck({ typed_config: config }: HealthCheck_CustomHealthCheck): RedisCheckSpec {
  return { kind: 'redis', key: unpack(config, 'envoy.extensions.health_checkers.redis.v3.Redis')?.key ?? '' };
}

function payload({ binary, text }: HealthCheck_Payload): Buffer {
  return text === undefined ? Buffer.from(binary ?? '', 'base64') : Buffer.from(text, 'hex');
}

function ranges(list: readonly Int64Range[]): StatusRange[] {
  return list.map(({ end, start }) => ({ start: Number(start ?? 0), end: Number(end ?? 0) }));
}
