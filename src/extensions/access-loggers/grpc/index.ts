// envoy.access_loggers.http_grpc and envoy.access_loggers.tcp_grpc: send an entry for each request or TCP connection to an access log
// service (ALS).

import type {
  CommonGrpcAccessLogConfig,
  HttpGrpcAccessLogConfig,
  TcpGrpcAccessLogConfig,
} from '../../../config/generated/api.js';
import {
  type AccessLogger,
  type AccessLoggerExtension,
  byValue,
  checkGrpcService,
  compileCallRetries,
  type HeaderNeeds,
  type ImplementedTable,
  noHeaderNeeds,
  obeyed,
  type Report,
  reportMistakes,
  type StreamInfo,
  type WorkerContext,
} from '../../sdk.js';
import { HttpEntries } from './http-entry.js';
import { LogKind, RETRY_ON, RETRY_POLICY, shareStream } from './log-stream.js';
import { GrpcLogStats, STATS_PREFIX } from './stats.js';
import { TcpEntries } from './tcp-entry.js';

const PACKAGE = 'envoy.extensions.access_loggers.grpc.v3';
const HTTP = `${PACKAGE}.HttpGrpcAccessLogConfig`;
const TCP = `${PACKAGE}.TcpGrpcAccessLogConfig`;

const COMMON: ImplementedTable = {
  'envoy.extensions.access_loggers.grpc.v3.CommonGrpcAccessLogConfig': {
    log_name: true,
    grpc_service: true,
    transport_api_version: byValue({ AUTO: true, V2: false, V3: true }),
    buffer_flush_interval: true,
    buffer_size_bytes: true,
    filter_state_objects_to_log: true,
    grpc_stream_retry_policy: true,
    custom_tags: true,
  },
};

export const httpGrpcAccessLog: AccessLoggerExtension<HttpGrpcAccessLogConfig> = {
  category: 'envoy.access_loggers',
  name: 'envoy.access_loggers.http_grpc',
  typeUrls: [`type.googleapis.com/${HTTP}`],
  implemented: {
    ...COMMON,
    [HTTP]: obeyed(
      'common_config',
      'additional_request_headers_to_log',
      'additional_response_headers_to_log',
      'additional_response_trailers_to_log',
    ),
  },
  validate(config, report) {
    checkCommon(config.common_config, report);
    reportMistakes(report, '', () => new HttpEntries(config, noHeaderNeeds()));
  },
  clusters: clustersOf,
  scopes: () => [{ prefix: STATS_PREFIX, layout: GrpcLogStats }],
  createOnWorker(config, context) {
    const needs = noHeaderNeeds();
    return createLogger(LogKind.Http, config.common_config!, new HttpEntries(config, needs), needs, context);
  },
};

export const tcpGrpcAccessLog: AccessLoggerExtension<TcpGrpcAccessLogConfig> = {
  category: 'envoy.access_loggers',
  name: 'envoy.access_loggers.tcp_grpc',
  typeUrls: [`type.googleapis.com/${TCP}`],
  implemented: { ...COMMON, [TCP]: obeyed('common_config') },
  validate(config, report) {
    checkCommon(config.common_config, report);
    reportMistakes(report, '', () => new TcpEntries(config, noHeaderNeeds()));
  },
  clusters: clustersOf,
  scopes: () => [{ prefix: STATS_PREFIX, layout: GrpcLogStats }],
  createOnWorker(config, context) {
    const needs = noHeaderNeeds();
    return createLogger(LogKind.Tcp, config.common_config!, new TcpEntries(config, needs), needs, context);
  },
};

function clustersOf({ common_config: common }: HttpGrpcAccessLogConfig | TcpGrpcAccessLogConfig) {
  return [
    ['common_config.grpc_service.envoy_grpc.cluster_name', common?.grpc_service?.envoy_grpc?.cluster_name],
  ] as const;
}

function checkCommon(config: CommonGrpcAccessLogConfig | undefined, report: Report): void {
  checkGrpcService(config?.grpc_service, 'common_config.grpc_service', report);
  reportMistakes(report, '', () => compileCallRetries(config?.grpc_stream_retry_policy, RETRY_POLICY, RETRY_ON));
  if (config?.grpc_service?.google_grpc !== undefined)
    report(
      'common_config.grpc_service.google_grpc',
      'workers call the hosts of clusters: define one with http2_protocol_options for target_uri, and name it in envoy_grpc',
    );
  if (config?.grpc_service?.timeout !== undefined)
    report('common_config.grpc_service.timeout', 'the stream has no end: leave it out');
}

function createLogger(
  kind: LogKind,
  config: CommonGrpcAccessLogConfig,
  entries: { encode(info: StreamInfo): Uint8Array },
  needs: HeaderNeeds,
  context: WorkerContext,
): AccessLogger {
  const [stream, release] = shareStream(kind, config, context);
  return { needs, log: (info) => stream.add(entries.encode(info)), close: release };
}
